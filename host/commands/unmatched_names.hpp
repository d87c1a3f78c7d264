// Finds names in a profile's rules and tool lists that no server or tool has, so that a mistyped
// name does not look like protection.
//
// Only literals are compared: tables [security.servers.NAME], allowed tools, and conditions such as
// `server_name == "x"` and `tool_name in ["a", "b"]`. Rules of the corporation's layer are not
// checked, because they are written for many profiles. A profile without servers has nothing to
// compare with.
//
// Used on one thread. Reads nothing; the stored lists are those in the profile (ServerDef::kept).
// A tool name is reported only if the lists of all servers that the rule can apply to are stored.
#pragma once

#include <string>
#include <vector>

#include "profile/profile.hpp"

namespace bulkhead::program {

inline constexpr std::size_t max_unmatched_names = 50;  // more are not returned

// Returns one line for each name: the file and line, the key, and the reason.
std::vector<std::string> unmatched_names(const Profile &profile);

}  // namespace bulkhead::program
