// The result of initialize. Used on the I/O thread.
#pragma once

#include <string>

#include "profile/profile.hpp"
#include "route/sessions.hpp"

namespace bulkhead {

// Composes the result for a session that has its view and revision. It contains the instructions of
// the servers that have responded so far, at most 16 KiB.
std::string initialize_result(const Session &session, const Profile &profile);

}  // namespace bulkhead
