// bulkhead-relay doctor: checks the way from this guest to its gateway, step by step, and says what
// to do about each failure. It starts the relay as a client would and talks through it.
#pragma once

#include <string>
#include <vector>

#include "connector-vsock/definition.hpp"

namespace bulkhead::relay {

// Prints a line per check to standard output. 0: all passed (warnings allowed), 1: one failed.
// relay_command: this program's arguments to be a relay, argv[0] first.
int run_doctor(const connector_vsock::Definition &definition,
               const std::vector<std::string> &relay_command);

}  // namespace bulkhead::relay
