// Reads files up to a size limit. Internal to the profile libraries.
#pragma once

#include <string>

#include "profile/layer.hpp"

namespace bulkhead::profiles {

// See read_profile_file(). `most` is the limit in bytes. If `regular` is set, only a regular file
// is read, so the call never blocks.
Result<std::string> read_whole(const std::string &path, std::size_t most, bool regular = false);

}  // namespace bulkhead::profiles
