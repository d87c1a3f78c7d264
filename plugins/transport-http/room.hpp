// Selects connections to close if there is no capacity for a new connection.
//
// Unused connections are closed first. If all connections are in use, the peer with the most
// connections loses connections from its largest group. A group consists of the connections of one
// session that wait for responses, of all the peer's connections that wait for responses without a
// session, or of all the peer's connections whose requests are arriving. Therefore, a client that
// fills the table cannot displace the connections of a client with a smaller group.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "connection.hpp"

namespace transport_http {

using Connections = std::span<const std::unique_ptr<Connection>>;

// Returns the oldest silent connections of the peer with the most silent connections, or the oldest
// idle connections if no connection is silent. The search is expensive, so several connections are
// returned. The result is empty if all connections are in use.
std::vector<Connection *> unused(Connections all);

// Returns connections from the largest group. Their number is such that closing them reduces the
// group to the size of the next one, but it is at least one. From a session, the newest calls are
// selected, because all of them belong to one client. From other groups, the oldest connections are
// selected. The result is empty if no peer has more than one connection.
std::vector<Connection *> of_largest_share(Connections all);

}  // namespace transport_http
