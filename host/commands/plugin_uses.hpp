// Finds out for what a profile uses its plugins, for the commands `plugin list` and `remove`.
#pragma once

#include <map>
#include <string>

#include "profile/profile.hpp"

namespace bulkhead::program {

// Returns how the profile uses each plugin, for example "transports.http" or "servers of type
// stdio". The keys are names or paths, as in the profile.
std::map<std::string, std::string> uses_of(const Profile &profile);

}  // namespace bulkhead::program
