// Selects connections to close if there is no capacity for a new connection.
//
// Unused connections are closed first. If all connections are in use, the peer with the most
// connections loses connections of its largest group. A group is one of: the connections of a
// session that wait for responses; all connections of the peer that wait without a session; all
// connections whose requests are arriving. Therefore, a client that fills the table cannot displace
// the connections of a client with a smaller group.
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

// Returns connections of the largest group: as many as are needed to reduce the group to the size
// of the next one, but at least one. From a session, the newest calls are selected, because all of
// them belong to one client. From other groups, the oldest connections are selected. The result is
// empty if no peer has more than one connection.
std::vector<Connection *> of_largest_share(Connections all);

}  // namespace transport_http
