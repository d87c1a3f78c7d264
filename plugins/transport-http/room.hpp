// Selects connections to close when there is no capacity for a new connection.
//
// Unused connections are closed first. If all are in use, connections are taken from the largest
// group of the peer with the most connections. A group consists of a session's connections that
// wait for answers, of all connections of the peer that wait without a session, or of all
// connections whose requests are still arriving. Therefore, a client that fills the table cannot
// displace the connections of a client with a smaller group.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "connection.hpp"

namespace transport_http {

using Connections = std::span<const std::unique_ptr<Connection>>;

// Returns the oldest silent connections of the peer with the most silent connections, or, if there
// are none, idle connections. Returns several connections, because the search is expensive. Returns
// none if all connections are in use.
std::vector<Connection *> unused(Connections all);

// Returns connections of the largest group in use, as many as are needed to reduce it to the size
// of the next group, but at least one. In a session's group, the newest calls are selected, because
// all belong to one client. In other groups, the oldest are selected. Returns none if no peer has
// more than one.
std::vector<Connection *> of_largest_share(Connections all);

}  // namespace transport_http
