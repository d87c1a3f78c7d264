// Reads server definitions that a plugin or a controlling program sends at run time.
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
    std::string name, reason;  // the reason contains no credential
  };
  std::vector<Refused> refused;
};

// Reads a JSON array of definitions, each with "name", "source" and the members of an mcpServers
// entry. Values are used as written: references are not expanded. Invalid definitions, and
// definitions that server_holds of `profile` forbids, are rejected individually. Returns an error
// if the text is not an array of objects or exceeds a limit (kProfileBytes, kGivenServers). The
// naming, limits and server types of `profile` apply.
Result<DefinedServers> read_definitions(std::string_view json, const Profile &profile);

}  // namespace bulkhead
