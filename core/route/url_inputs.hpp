// Converts errors with the code -32042 ("URL elicitation required") from servers. In such a case,
// the call has not run, and the user must visit URLs first. MCP 2026-07-28 does not have this code;
// a result can ask for input instead.
//
// Thread-safe.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace bulkhead {

inline constexpr std::size_t max_url_inputs = 16;

// Returns the error's elicitations as `inputRequests` (JSON). The error must be validated JSON.
// Returns nullopt if it has another code, no elicitations, more than max_url_inputs of them, or an
// elicitation without a message or URL.
std::optional<std::string> url_inputs(std::string_view error);

}  // namespace bulkhead
