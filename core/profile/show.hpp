// Values with their origin, for people. Internal to core/profile.
#pragma once

#include "profile/sections.hpp"

namespace bulkhead::profiles {

// Fills profile.shown from the merged tree; defaults have the layer "default". References are shown
// as they were written; credentials as "***".
void show(const Node &root, Context &context);

}  // namespace bulkhead::profiles
