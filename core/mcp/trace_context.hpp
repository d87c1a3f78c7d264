// Validates the W3C Trace Context and Baggage values in MCP's `_meta`.
//
// Policies do not evaluate these members and approvals do not cover them, so they must contain only
// valid trace data. Thread-safe. Never allocates.
#pragma once

#include <cstddef>
#include <string_view>

namespace bulkhead::mcp {

// Maximum size of one value; longer values count as malformed. (W3C: 8,192 bytes for baggage, 32
// members of tracestate.)
inline constexpr std::size_t max_trace_bytes = 8192;
inline constexpr std::size_t max_tracestate_members = 32;

// The texts are unescaped and without quotes.
bool valid_traceparent(std::string_view text) noexcept;
bool valid_tracestate(std::string_view text) noexcept;
bool valid_baggage(std::string_view text) noexcept;

// Returns true if this member of `_meta` is traceparent, tracestate or baggage and has an invalid
// value. `name` is without quotes and may be escaped; `value` is a token. Both are validated JSON.
bool is_bad_trace(std::string_view name, std::string_view value) noexcept;

}  // namespace bulkhead::mcp
