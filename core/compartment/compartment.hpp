// The life of one compartment's process: it takes its slice, opens what it will need, gives up
// everything else, and only then lets plugins and bytes from outside in.
#pragma once

namespace bulkhead {

// Runs until the supervisor says stop, or has gone; with the descriptors of control.hpp. Returns
// the process's exit code; errors have gone to the supervisor.
int run_compartment();

}  // namespace bulkhead
