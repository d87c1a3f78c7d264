// The user layer's file, connectors.json beside the default profile: servers that the connector API
// has added. It is written whole, under a lock, and only when the whole profile is valid with it.
//
// Thread: any; blocks for files and, at most lock_ms, for another gateway's change.
#pragma once

#include <string>
#include <string_view>

#include "profile/server_entry.hpp"
#include "service/service_protocol.hpp"
#include "sources/profile_source.hpp"

namespace bulkhead::program {

inline constexpr std::uint64_t lock_ms = 2'000;

struct ConnectorChange {
  ServiceAnswer answer;  // a refusal, or what the client is told once `next` has been applied
  LoadedProfile next;    // the profile with the change
};

ConnectorChange add_connector(const Arguments &arguments, Transports transports,
                              const ServerEntry &entry);
ConnectorChange remove_connector(const Arguments &arguments, Transports transports,
                                 std::string_view id);
ConnectorList connector_list(const LoadedProfile &loaded);

}  // namespace bulkhead::program
