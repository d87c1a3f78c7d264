// The user layer's file, connectors.json beside the default profile: servers that the connector API
// has added. It is written whole, under a lock, and only when the whole profile is valid with it.
//
// Thread: any; blocks for files and, at most lock_ms, for another gateway's change.
#pragma once

#include <string>
#include <string_view>

#include "control_server.hpp"
#include "profile_source.hpp"

namespace bulkhead::program {

inline constexpr std::uint64_t lock_ms = 2'000;

struct ConnectorChange {
  ControlAnswer refused;  // status 200: not refused
  LoadedProfile next;     // the profile with the change
  ControlAnswer answer;   // for the client, once the profile has been applied
};

// `body`: the request's JSON object.
ConnectorChange add_connector(const Arguments &arguments, Transports transports,
                              std::string_view body);
ConnectorChange remove_connector(const Arguments &arguments, Transports transports,
                                 std::string_view id);
// {"mode":...,"profile_id":...,"servers":[...]}, sorted by id.
ControlAnswer connector_list(const LoadedProfile &loaded);

}  // namespace bulkhead::program
