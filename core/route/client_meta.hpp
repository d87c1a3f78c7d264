// Removes the members of params._meta that are only for the gateway: the revision, capabilities,
// name and log level of a client of MCP 2026-07-28. A server receives the gateway's own values
// instead (request_meta.hpp), or none.
//
// Used on the reactor thread.
#pragma once

#include "route/message.hpp"
#include "route/splice.hpp"

namespace bulkhead {

// Adds at most one edit for each of these members; all other bytes are unchanged. Returns true if
// _meta still has members. Never allocates. If `replaced` is true, the server receives the
// gateway's own values instead, and the members are removed from the requests of all clients.
// Otherwise, they are removed only from requests of revision 2026-07-28.
bool remove_client_meta(Splice *splice, const Message &request, bool replaced) noexcept;

// Like remove_client_meta(), but for notifications: removes the member of params._meta that
// identifies the gateway's own subscription at the server.
bool remove_subscription_id(Splice *splice, const Message &notification) noexcept;

}  // namespace bulkhead
