// The transport checks of doctor: whether transports can be configured, and whether guests' sockets
// can be created and reached. Nothing is bound; connections are closed at once.
#pragma once

#include <string>
#include <vector>

#include "common/findings.hpp"
#include "profile/profile.hpp"

namespace bulkhead::program {

// served: the endpoints of running gateways, as status reports them.
void check_transports(const Profile &profile, const std::vector<std::string> &served,
                      Findings *findings);

}  // namespace bulkhead::program
