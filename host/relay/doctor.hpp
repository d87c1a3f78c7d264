// bulkhead-relay doctor: checks the connection from this guest to its gateway step by step and
// explains each failure. It starts the relay as a client would and sends messages through it.
#pragma once

#include <string>
#include <vector>

#include "connector-vsock/definition.hpp"

namespace bulkhead::relay {

// Prints one line per check to standard output. Returns 0 if all passed (warnings included), 1 if
// one failed. relay_command: the arguments that run this program as a relay, argv[0] first.
int run_doctor(const connector_vsock::Definition &definition,
               const std::vector<std::string> &relay_command);

}  // namespace bulkhead::relay
