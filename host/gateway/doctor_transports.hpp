// doctor's look at the transports: whether they can be configured, and whether the sockets of
// guests can be made and reached. Nothing is bound; what is connected to is closed at once.
#pragma once

#include <string>
#include <vector>

#include "common/findings.hpp"
#include "profile/profile.hpp"

namespace bulkhead::program {

// served: the endpoints of the gateways that run, as status has them.
void check_transports(const Profile &profile, const std::vector<std::string> &served,
                      Findings *findings);

}  // namespace bulkhead::program
