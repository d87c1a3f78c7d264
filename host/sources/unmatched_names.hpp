// Finds names in a profile's rules and tool lists that do not match any server or tool. A rule with
// a mistyped name has no effect and could give a false sense of protection.
//
// Only literals are compared: tables [security.servers.NAME], allowed tools, and conditions such as
// `server_name == "x"` and `tool_name in ["a", "b"]`. Rules in the corporation's layer are not
// checked, because they are written for many profiles. A tools plugin counts as a server whose list
// is not stored. If a profile has no servers, there is nothing to compare with.
//
// Used on one thread. Accesses no files: the stored lists are in the profile (ServerDef::kept). An
// unknown tool name is reported only if the lists of all servers to which the rule can apply are
// stored. In conditions, a name under which clients see a listed tool is also reported.
#pragma once

#include <string>
#include <vector>

#include "profile/profile.hpp"

namespace bulkhead::program {

inline constexpr std::size_t max_unmatched_names = 50;  // more are not returned

// Returns one line for each name that matches no server or tool, with the file and line, the key,
// and the reason.
std::vector<std::string> unmatched_names(const Profile &profile);

}  // namespace bulkhead::program
