// The transport checks of doctor: whether transports can be configured, and whether guests' sockets
// can be created and reached. No address is bound, and connections are closed at once.
#pragma once

#include <string>
#include <vector>

#include "common/findings.hpp"
#include "profile/profile.hpp"

namespace bulkhead::program {

// `served` has the endpoints of running gateways, as reported by their status.
void check_transports(const Profile &profile, const std::vector<std::string> &served,
                      Findings *findings);

}  // namespace bulkhead::program
