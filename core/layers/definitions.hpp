// Parses server definitions that a plugin or a controlling program sends at run time.
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
    std::string name, reason;  // the reason contains no credentials
  };
  std::vector<Refused> refused;
};

// Parses a JSON array of definitions. Each has "name", optionally "source", and the members of an
// mcpServers entry. Variable references are not expanded. The naming, limits and server types of
// `profile` apply. A definition that is invalid, repeats a name, or is forbidden by the profile's
// server_holds is rejected without affecting the others. Returns BH_E_INVALID if the text is not an
// array of objects or exceeds a limit (kGivenServers, or one of layer.hpp).
Result<DefinedServers> read_definitions(std::string_view json, const Profile &profile);

}  // namespace bulkhead
