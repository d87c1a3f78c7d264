// Internal to core/profile.
#pragma once

#include <string>

#include "profile/layer.hpp"

namespace bulkhead::profiles {

// See read_profile_file(); `most` bytes are the bound. `regular`: nothing but a regular file will
// do, so that it never blocks.
Result<std::string> read_whole(const std::string &path, std::size_t most, bool regular = false);

}  // namespace bulkhead::profiles
