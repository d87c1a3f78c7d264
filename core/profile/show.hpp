// Collects values with their origins, for `profile show`. Internal to the profile libraries.
#pragma once

#include "profile/sections.hpp"

namespace bulkhead::profiles {

// Fills profile.shown from the merged tree. Defaults are attributed to the layer "default".
// References are shown as written, and credentials as "***".
void show(const Node &root, Context &context);

}  // namespace bulkhead::profiles
