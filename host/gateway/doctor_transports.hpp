// Implements the transport checks of `doctor`: whether transports can be configured, and whether
// the sockets for guests can be created and reached. The checks do not bind any addresses, and they
// close connections immediately.
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
