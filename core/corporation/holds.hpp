// Finds holds. A hold protects a part of the profile from changes by other layers.
#pragma once

#include <string>
#include <vector>

#include "profile/profile.hpp"

namespace bulkhead {

// Returns the first hold that applies to a path, such as {"mcpServers", "github"}, or to one of its
// parents. Returns null if there is none.
const ProfileHold *find_hold(const std::vector<ProfileHold> &holds,
                             const std::vector<std::string> &path);

}  // namespace bulkhead
