// Validates the W3C Trace Context and Baggage values in MCP's `_meta`. Policies do not evaluate
// these members, and approvals do not show them, so they must not contain anything but valid trace
// data. Thread-safe. Never allocates.
#pragma once

#include <cstddef>
#include <string_view>

namespace bulkhead::mcp {

// Size limit for a value; longer values are invalid. (The limits in the W3C specifications are
// 8,192 bytes for baggage and 32 members for tracestate.)
inline constexpr std::size_t max_trace_bytes = 8192;
inline constexpr std::size_t max_tracestate_members = 32;

// `text` must be unescaped and without quotes.
bool valid_traceparent(std::string_view text) noexcept;
bool valid_tracestate(std::string_view text) noexcept;
bool valid_baggage(std::string_view text) noexcept;

// Returns true if this member of `_meta` is traceparent, tracestate or baggage, and its value is
// invalid. `name` is a validated string token without quotes, which may have escape sequences.
// `value` is the validated JSON text of the value.
bool is_bad_trace(std::string_view name, std::string_view value) noexcept;

}  // namespace bulkhead::mcp
