// Where policies and telemetry plugins run.
#pragma once

#include "profile/profile.hpp"

namespace bulkhead::program {

// Returns true if this policy or telemetry plugin runs in the endpoint's process, and false if it
// has a compartment of its own.
bool runs_in_endpoint(const PluginUse &use);

}  // namespace bulkhead::program
