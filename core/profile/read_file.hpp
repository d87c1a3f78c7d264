// Reads files up to a size limit. Internal to the profile libraries.
#pragma once

#include <string>

#include "profile/layer.hpp"

namespace bulkhead::profiles {

// See read_profile_file(). `most` is the size limit in bytes. If `regular` is set, only regular
// files are read, so the call never blocks.
Result<std::string> read_whole(const std::string &path, std::size_t most, bool regular = false);

}  // namespace bulkhead::profiles
