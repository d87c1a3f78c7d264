// Removal of the members of params._meta that describe a request to the gateway only: the revision,
// the capabilities, the name and the log level of a client of MCP 2026-07-28. A server receives
// those of the gateway (request_meta.hpp), or none.
//
// Used on the I/O thread.
#pragma once

#include "route/message.hpp"
#include "route/splice.hpp"

namespace bulkhead {

// Adds at most one edit for each of these members; all other bytes are unchanged. Returns true if
// _meta still has members. Never allocates. `replaced` is true if the server receives such members
// of the gateway: they are then removed from the requests of all clients, else only from requests
// of that revision.
bool remove_client_meta(Splice *splice, const Message &request, bool replaced) noexcept;

// The same for the member of a notification's params._meta that names the gateway's own
// subscription at the server.
bool remove_subscription_id(Splice *splice, const Message &notification) noexcept;

}  // namespace bulkhead
