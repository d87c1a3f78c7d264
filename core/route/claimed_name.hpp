// The name that a client claims for itself. Used on the I/O thread.
#pragma once

#include <string_view>

#include "route/session.hpp"

namespace bulkhead {

// Returns clientInfo.name, cut to Session::max_claimed_name bytes between characters; null if it is
// not a string. `client_info` is validated JSON, or empty. If the name is that of `before`, returns
// `before`, so that requests of one client share the string.
ClaimedName claimed_name(std::string_view client_info, const ClaimedName &before = nullptr);

}  // namespace bulkhead
