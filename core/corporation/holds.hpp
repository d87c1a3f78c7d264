// Holds: parts of a profile that one layer protects from changes by other layers.
#pragma once

#include <string>
#include <vector>

#include "profile/profile.hpp"

namespace bulkhead {

// Returns the first hold on this path ({"mcpServers", "github"}) or on one of its parents. Returns
// null if there is no such hold.
const ProfileHold *find_hold(const std::vector<ProfileHold> &holds,
                             const std::vector<std::string> &path);

}  // namespace bulkhead
