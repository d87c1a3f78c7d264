// The transport checks of doctor: whether transports can be configured and whether guest sockets
// can be created and reached. Addresses are never bound, and connections are closed immediately.
#pragma once

#include <string>
#include <vector>

#include "common/findings.hpp"
#include "profile/profile.hpp"

namespace bulkhead::program {

// `served` contains the endpoints that running gateways report in their status.
void check_transports(const Profile &profile, const std::vector<std::string> &served,
                      Findings *findings);

}  // namespace bulkhead::program
