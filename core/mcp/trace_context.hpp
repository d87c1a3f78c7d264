// The W3C's Trace Context and Baggage, as MCP carries them in `_meta`: is a value one of theirs?
//
// Nothing else looks at these members, and an approval is not bound to them, so they must not carry
// anything else. Thread: any. Never allocates.
#pragma once

#include <cstddef>
#include <string_view>

namespace bulkhead::mcp {

// Of one value; longer ones count as malformed. (W3C: 8,192 for baggage, 32 members of tracestate.)
inline constexpr std::size_t max_trace_bytes = 8192;
inline constexpr std::size_t max_tracestate_members = 32;

// The texts without quotes, unescaped.
bool valid_traceparent(std::string_view text) noexcept;
bool valid_tracestate(std::string_view text) noexcept;
bool valid_baggage(std::string_view text) noexcept;

// Is this member of `_meta` one of the three, with a value that it cannot have? name: without its
// quotes, escaped or not; value: a token. Both validated.
bool is_bad_trace(std::string_view name, std::string_view value) noexcept;

}  // namespace bulkhead::mcp
