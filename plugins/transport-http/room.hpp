// Which connections end so that another one has a place.
//
// Those that are not in use go first. Where all are in use, the largest share is cut: of the peer
// that has most connections the group that is largest. A group is a session's connections that wait
// for answers, all of the peer that wait without a session, or all whose requests still arrive. So
// a client whose group is smaller loses nothing to one that fills the table.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "connection.hpp"

namespace transport_http {

using Connections = std::span<const std::unique_ptr<Connection>>;

// Silent ones, else those between two requests: of the peer that has most of them the oldest.
// Several at once, since looking for them costs more than they are worth. Empty: there are none.
std::vector<Connection *> unused(Connections all);

// Of the largest group in use as many as it is larger than the next one, and at least one: where
// they are a session's, the newest call, since they are all its own; else the oldest. Empty: no
// peer has more than one.
std::vector<Connection *> of_largest_share(Connections all);

}  // namespace transport_http
