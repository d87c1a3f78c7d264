// Shallow scans of JSON-RPC messages, without a tree: whether a message, or a batch of them
// (revision 2025-03-26 allowed it), answers a request. Then an event stream has done its work. The
// host validates the messages itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace connector_http {

// Returns true if the top-level object has "result" or "error" and no "method" before it. Stops at
// the first of these members, which servers write before long values.
bool is_response(std::string_view message) noexcept;

// Returns true if the message is a response whose id is a string or a number.
bool answers_a_request(std::string_view message) noexcept;

// Returns true if the message is a response to the request with this number as id.
bool answers(std::string_view message, std::uint64_t id) noexcept;

// Returns true if the message is a response, or a batch that contains one.
bool holds_response(std::string_view message) noexcept;

// Returns true if the first byte that is not white space is '['.
bool is_batch(std::string_view message) noexcept;

// Case-insensitive search, ASCII only.
bool mentions(std::string_view text, std::string_view word) noexcept;

}  // namespace connector_http
