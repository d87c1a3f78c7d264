// Connects an MCP client on standard input and output to an endpoint. Used by bulkhead-relay and
// `bulkhead relay`.
#pragma once

#include <string_view>

namespace bulkhead::relay {

// Runs the relay or `doctor`, and returns the exit code of the process. `program` is what the user
// typed, for example "bulkhead relay".
int run(std::string_view program, int argc, const char *const *argv);

}  // namespace bulkhead::relay
