// Selects connections to close when there is no capacity for a new one.
//
// Unused connections are closed first. If all are in use, the largest share is reduced: the largest
// group of the peer that has the most connections. A group is one of: a session's connections that
// wait for answers, all connections of the peer that wait without a session, all connections whose
// requests are still arriving. A client with a smaller group therefore loses no connection to a
// client that fills the table.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "connection.hpp"

namespace transport_http {

using Connections = std::span<const std::unique_ptr<Connection>>;

// Returns the oldest silent connections of the peer that has the most of them, or else idle
// connections. Returns several at once, since the search is expensive; empty if there are none.
std::vector<Connection *> unused(Connections all);

// Returns connections of the largest group in use: the number by which it exceeds the next group,
// and at least one. In a session's group the newest call is selected, since all belong to that
// client; otherwise the oldest. Empty if no peer has more than one.
std::vector<Connection *> of_largest_share(Connections all);

}  // namespace transport_http
