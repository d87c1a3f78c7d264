// The MCP method names that the gateway knows.
#pragma once

#include <string_view>

#include "mcp/scan.hpp"

namespace bulkhead::mcp {

// inside: a validated string token without quotes; escapes are decoded ("tools\/call").
Method method_of(std::string_view inside) noexcept;

}  // namespace bulkhead::mcp
