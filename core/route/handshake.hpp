// The results of initialize and of server/discover. Used on the I/O thread.
#pragma once

#include <string>

#include "profile/profile.hpp"
#include "route/sessions.hpp"

namespace bulkhead {

// Composes the result for a session that has its view and revision. It contains the instructions of
// the servers that have responded so far, at most 16 KiB.
std::string initialize_result(const Session &session, const Profile &profile);
// The same for server/discover (2026-07-28), for a session that has its view. Clients may not store
// it, because the instructions grow while servers start.
std::string discover_result(const Session &session, const Profile &profile);

// The gateway as {"name":…,"version":…}.
std::string server_info(const Profile &profile);

}  // namespace bulkhead
