// Reading files with a limit. Internal to the rooms of profiles.
#pragma once

#include <string>

#include "profile/layer.hpp"

namespace bulkhead::profiles {

// See read_profile_file(); `most` is the limit in bytes. `regular`: only a regular file is read, so
// that the call never blocks.
Result<std::string> read_whole(const std::string &path, std::size_t most, bool regular = false);

}  // namespace bulkhead::profiles
