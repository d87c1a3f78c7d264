// Composes the results of initialize and server/discover. Used on the reactor thread.
#pragma once

#include <string>

#include "profile/profile.hpp"
#include "route/sessions.hpp"

namespace bulkhead {

// The session must already have a view and a revision. The result contains the server instructions
// that are known so far, from responses or stored lists, limited to about 16 KiB. It also names the
// servers that are starting for the first time.
std::string initialize_result(const Session &session, const Profile &profile);
// Like initialize_result(), but for server/discover (2026-07-28); the session needs no revision.
// The result forbids caching because more instructions are added while servers start.
std::string discover_result(const Session &session, const Profile &profile);

// Returns the implementation info of the gateway: {"name":…,"version":…}.
std::string server_info(const Profile &profile);

}  // namespace bulkhead
