// The relay: an MCP client on standard input and output, joined to an endpoint by route = "pipe".
// bulkhead-relay is this and nothing else; `bulkhead relay` is the same code.
#pragma once

#include <string_view>

namespace bulkhead::relay {

// The process's exit code. program: how the person has called us ("bulkhead relay").
int run(std::string_view program, int argc, const char *const *argv);

}  // namespace bulkhead::relay
