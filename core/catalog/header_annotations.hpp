// Removes the header annotations (x-mcp-header) of tools whose annotations are invalid. A client of
// MCP 2026-07-28 over HTTP drops such a tool, although the gateway needs no headers to call it.
//
// Thread-safe.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace bulkhead {

// Returns the tool (a validated JSON object) without the annotations of its inputSchema if any of
// them is invalid (see mcp::read_param_headers). Returns nullopt if there is nothing to remove.
std::optional<std::string> without_invalid_headers(std::string_view tool);

}  // namespace bulkhead
