// Server definitions that a plugin or a controlling program sends at run time.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "profile/profile.hpp"

namespace bulkhead {

inline constexpr std::size_t kGivenServers = 1000;

struct DefinedServers {
  std::vector<ServerDef> servers;
  struct Refused {
    std::string name, reason;  // the reason holds no credential
  };
  std::vector<Refused> refused;
};

// Reads a JSON array of definitions: "name", "source" and the members of a server of mcpServers,
// values as they are (nothing is expanded). Invalid definitions, and those that server_holds of
// `profile` forbid, are rejected one by one. An error: not an array of objects, or too large
// (kProfileBytes, kGivenServers). Naming, limits and types of servers are those of `profile`.
Result<DefinedServers> read_definitions(std::string_view json, const Profile &profile);

}  // namespace bulkhead
