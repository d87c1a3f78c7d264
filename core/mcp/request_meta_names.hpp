// The members of params._meta that describe a request of MCP 2026-07-28. They apply to one hop: the
// gateway reads them, and removes them before it forwards the request. Thread-safe.
#pragma once

#include <algorithm>
#include <iterator>
#include <string_view>

#include "mcp/json_names.hpp"

namespace bulkhead::mcp {

// Must be in the same order as Scan::meta_revision, meta_capabilities, meta_client_info and
// meta_log_level.
inline constexpr const char *request_meta_names[] = {
    "io.modelcontextprotocol/protocolVersion", "io.modelcontextprotocol/clientCapabilities",
    "io.modelcontextprotocol/clientInfo", "io.modelcontextprotocol/logLevel"};

// `key` is a validated string token with quotes. Escape sequences are decoded.
inline bool is_request_meta(std::string_view key) noexcept {
  const std::string_view inside = key.substr(1, key.size() - 2);
  return std::any_of(std::begin(request_meta_names), std::end(request_meta_names),
                     [inside](const char *name) { return json::same_text(inside, name); });
}

}  // namespace bulkhead::mcp
