// Reads the name that a client claims for itself. Used on the reactor thread.
#pragma once

#include <string_view>

#include "route/session.hpp"

namespace bulkhead {

// Returns clientInfo.name, truncated to Session::max_claimed_name bytes at a character boundary, or
// null if there is no such string. `client_info` is validated JSON or empty. If the name equals
// `before`, returns `before`, so all requests of a client share one string.
ClaimedName claimed_name(std::string_view client_info, const ClaimedName &before = nullptr);

}  // namespace bulkhead
