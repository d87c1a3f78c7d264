// The result of initialize. Thread: [io].
#pragma once

#include <string>

#include "profile/profile.hpp"
#include "route/sessions.hpp"

namespace bulkhead {

// The session has its view and its revision. With the instructions of the servers that have
// answered by now, at most 16 KiB of them.
std::string initialize_result(const Session &session, const Profile &profile);

}  // namespace bulkhead
