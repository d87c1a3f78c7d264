// Collects the values of a profile and their origins, for `profile show`. Internal to the profile
// libraries.
#pragma once

#include "profile/sections.hpp"

namespace bulkhead::profiles {

// Fills profile.shown from the merged tree. The origin of a default is the layer "default".
// References are shown as written. Credentials are shown as "***".
void show(const Node &root, Context &context);

}  // namespace bulkhead::profiles
