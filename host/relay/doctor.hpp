// The command `bulkhead-relay doctor`: checks the connection from this guest to its gateway step by
// step and explains each failure. It starts the relay like a client and sends messages through it.
#pragma once

#include <string>
#include <vector>

#include "connector-vsock/definition.hpp"

namespace bulkhead::relay {

// Prints one line per check to standard output. Returns 0 if no check failed (warnings are
// allowed), otherwise 1. `relay_command` contains the arguments that run this program as a relay,
// starting with argv[0].
int run_doctor(const connector_vsock::Definition &definition,
               const std::vector<std::string> &relay_command);

}  // namespace bulkhead::relay
