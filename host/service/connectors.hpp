// Adds and removes servers in the user layer, which is the part of the configuration that the
// connector API edits, and lists the servers of the whole profile.
//
// The user layer is the file connectors.json in the directory of the default profile. The file is
// replaced as a whole, under a lock, and only if the complete profile is valid after the change.
//
// Thread-safe. Blocks for file access, and for up to lock_ms while another gateway holds the lock.
#pragma once

#include <string>
#include <string_view>

#include "profile/server_entry.hpp"
#include "service/service_protocol.hpp"
#include "sources/profile_source.hpp"

namespace bulkhead::program {

inline constexpr std::uint64_t lock_ms = 2'000;

struct ConnectorChange {
  ServiceAnswer answer;  // an error, or the response to send after `next` has been applied
  LoadedProfile next;    // the changed profile, if there is no error
};

ConnectorChange add_connector(const Arguments &arguments, Transports transports,
                              const ServerEntry &entry);
ConnectorChange remove_connector(const Arguments &arguments, Transports transports,
                                 std::string_view id);
ConnectorList connector_list(const LoadedProfile &loaded);

}  // namespace bulkhead::program
