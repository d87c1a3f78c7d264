// The MCP methods that the gateway knows.
#pragma once

#include <string_view>

#include "mcp/scan.hpp"

namespace bulkhead::mcp {

// `inside` is a validated string token without quotes. If it contains escape sequences, as in
// "tools\/call", they are decoded.
Method method_of(std::string_view inside) noexcept;

// Returns true for requests that do not change a server's state, so they can be retried: the lists
// of tools, resources, templates and prompts, resources/read, prompts/get, completion/complete,
// tasks/get and server/discover.
bool is_read(Method method) noexcept;

}  // namespace bulkhead::mcp
