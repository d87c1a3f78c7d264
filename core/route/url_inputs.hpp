// Errors of servers with the code -32042, "URL elicitation required": the call has not run, and the
// user has to visit URLs first. MCP 2026-07-28 has no such code, but results that ask for input.
//
// Thread-safe.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace bulkhead {

inline constexpr std::size_t max_url_inputs = 16;

// Returns the error's elicitations as `inputRequests` (JSON). Returns nullopt if the error
// (validated JSON) has another code, or no elicitations, or more than max_url_inputs of them.
std::optional<std::string> url_inputs(std::string_view error);

}  // namespace bulkhead
