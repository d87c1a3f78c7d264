// The relay: connects an MCP client on standard input and output to an endpoint, with route =
// "pipe". bulkhead-relay and `bulkhead relay` both run this code.
#pragma once

#include <string_view>

namespace bulkhead::relay {

// Returns the process's exit code. `program` is the name that the user typed ("bulkhead relay").
int run(std::string_view program, int argc, const char *const *argv);

}  // namespace bulkhead::relay
