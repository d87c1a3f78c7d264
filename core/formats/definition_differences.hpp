// Compares two definitions of a server. Internal to the profile libraries.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "profile/tree.hpp"

namespace bulkhead::profiles {

// Returns true for the keys that define a server in every client, such as `command`. All other keys
// are settings of the profile, unless the client's file has them too.
bool is_client_key(std::string_view key) noexcept;

// Returns the keys that differ, such as "args" or "env.TOKEN". `here` is the definition in the
// profile, `there` the imported one; settings that only `here` has do not count. Whether a server
// is disabled is not compared.
std::vector<std::string> definition_differences(const Node &here, const Node &there);

// Returns nullopt if the definitions differ in the program (command, args, env, cwd), the URL or
// the type. Otherwise, returns the keys that differ: settings of the gateway, headers and
// bearerToken.
std::optional<std::vector<std::string>> setting_differences(const Node &a, const Node &b);

}  // namespace bulkhead::profiles
