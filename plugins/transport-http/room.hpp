// Selects connections to close if there is no capacity for a new connection.
//
// Unused connections are closed first. If all connections are in use, the peer with the most
// connections loses connections from its largest group. The groups of a peer are:
//  - for each session, the connections that wait for responses or carry its general stream
//  - the connections that wait for responses without a session
//  - the connections whose requests are arriving
//
// Therefore, a client that fills the table cannot displace the connections of a client with a
// smaller group.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "connection.hpp"

namespace transport_http {

using Connections = std::span<const std::unique_ptr<Connection>>;

// Returns the oldest silent connections of the peer that has the most of them. If no connection is
// silent, returns the oldest idle connections. Several connections are returned, because the search
// is expensive. The result is empty if all connections are in use.
std::vector<Connection *> unused(Connections all);

// Returns at least one connection from the largest group, but not so many that closing them would
// make the group smaller than the next largest one. From a session, the newest calls are selected,
// because all calls in a session come from the same client. From other groups, the oldest
// connections are selected. The result is empty if no peer has more than one connection.
std::vector<Connection *> of_largest_share(Connections all);

}  // namespace transport_http
