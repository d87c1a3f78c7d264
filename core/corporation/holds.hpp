// Holds: parts of a profile that one of its layers protects from the other layers.
#pragma once

#include <string>
#include <vector>

#include "profile/profile.hpp"

namespace bulkhead {

// Returns the first hold on this path ({"mcpServers", "github"}) or on a part that contains it, or
// null if there is none.
const ProfileHold *find_hold(const std::vector<ProfileHold> &holds,
                             const std::vector<std::string> &path);

}  // namespace bulkhead
