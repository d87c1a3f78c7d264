// The MCP method names that the gateway knows.
#pragma once

#include <string_view>

#include "mcp/scan.hpp"

namespace bulkhead::mcp {

// inside: a validated string token without quotes; escapes are decoded ("tools\/call").
Method method_of(std::string_view inside) noexcept;

// True for requests that change nothing at a server, so that they may be sent again: lists, reads,
// prompts, completion, server/discover.
bool is_read(Method method) noexcept;

}  // namespace bulkhead::mcp
