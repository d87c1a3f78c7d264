// The user layer's file, connectors.json beside the default profile: the servers that were added
// with the connector API. The whole file is replaced, under a lock, and only if the complete
// profile is valid with the change.
//
// Thread-safe. Blocks for file access, and for up to lock_ms while another gateway changes the
// file.
#pragma once

#include <string>
#include <string_view>

#include "profile/server_entry.hpp"
#include "service/service_protocol.hpp"
#include "sources/profile_source.hpp"

namespace bulkhead::program {

inline constexpr std::uint64_t lock_ms = 2'000;

struct ConnectorChange {
  ServiceAnswer answer;  // the error, or the response to send once `next` has been applied
  LoadedProfile next;    // the changed profile
};

ConnectorChange add_connector(const Arguments &arguments, Transports transports,
                              const ServerEntry &entry);
ConnectorChange remove_connector(const Arguments &arguments, Transports transports,
                                 std::string_view id);
ConnectorList connector_list(const LoadedProfile &loaded);

}  // namespace bulkhead::program
