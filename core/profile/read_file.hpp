// Internal to core/profile.
#pragma once

#include <string>

#include "profile/load.hpp"

namespace bulkhead::profiles {

// See read_profile_file(); `most` bytes are the bound.
Result<std::string> read_whole(const std::string &path, std::size_t most);

}  // namespace bulkhead::profiles
