// Implements `bulkhead-relay doctor`, which checks the connection from a guest to its gateway step
// by step and explains each failure. It starts the relay and sends messages through it, as a client
// would.
#pragma once

#include <string>
#include <vector>

#include "connector-vsock/definition.hpp"

namespace bulkhead::relay {

// Prints one line per check to standard output. Returns 0 if no check has failed (there may be
// warnings), otherwise 1. `relay_command` is the command line that runs this program as a relay,
// including argv[0].
int run_doctor(const connector_vsock::Definition &definition,
               const std::vector<std::string> &relay_command);

}  // namespace bulkhead::relay
