// Selects connections to close when there is no capacity for a new one.
//
// Unused connections are closed first. If all are in use, the largest share is reduced: the largest
// group of the peer that has most connections. A group is a session's connections that wait for
// answers, all connections of the peer that wait without a session, or all whose requests are still
// arriving. So a client with a smaller group loses no connection to a client that fills the table.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "connection.hpp"

namespace transport_http {

using Connections = std::span<const std::unique_ptr<Connection>>;

// The oldest silent connections of the peer that has most of them, or else idle ones. Several at
// once, since the search is expensive. Empty: there are none.
std::vector<Connection *> unused(Connections all);

// Connections of the largest group in use: as many as it exceeds the next group by, and at least
// one. In a session's group the newest call, since all are that client's own; else the oldest.
// Empty: no peer has more than one.
std::vector<Connection *> of_largest_share(Connections all);

}  // namespace transport_http
