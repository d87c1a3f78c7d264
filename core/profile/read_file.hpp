// Reads files up to a size limit. Internal to the profile libraries.
#pragma once

#include <string>

#include "profile/layer.hpp"

namespace bulkhead::profiles {

// Reads a file of at most `most` bytes. Returns the same errors as read_profile_file(). If
// `regular` is set, returns BH_E_IO unless the path is a regular file. The call then never blocks.
Result<std::string> read_whole(const std::string &path, std::size_t most, bool regular = false);

}  // namespace bulkhead::profiles
