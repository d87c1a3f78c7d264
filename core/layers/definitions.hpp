// Server definitions that come while the gateway runs, from a plugin or a program that drives it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "profile/profile.hpp"

namespace bulkhead {

inline constexpr std::size_t kGivenServers = 1000;

struct GivenServers {
  std::vector<ServerDef> servers;
  struct Refused {
    std::string name, reason;  // the reason holds no credential
  };
  std::vector<Refused> refused;
};

// Reads a JSON array of definitions: "name", "source" and the members of a server of mcpServers,
// values taken as they are (nothing is expanded). What is wrong in itself is refused, the others go
// on; so is what server_holds of `profile` keep from it. An error: no array of objects, or too
// large (kProfileBytes, kGivenServers). Names, limits and types of servers are those of `profile`.
Result<GivenServers> read_definitions(std::string_view json, const Profile &profile);

}  // namespace bulkhead
