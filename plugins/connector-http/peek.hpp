// Shallow scans of JSON-RPC messages, without building a tree. They detect whether a message, or a
// batch of messages (allowed by revision 2025-03-26), answers a request; the event stream is then
// no longer needed. The host validates the messages itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace connector_http {

// Returns true if the top-level object has "result" or "error" and no "method" before it. Stops at
// the first of these members, because servers write them before long values.
bool is_response(std::string_view message) noexcept;

// Returns true if the message is a response whose id is a string or a number.
bool answers_a_request(std::string_view message) noexcept;

// Returns true if the message is a response to the request with this id.
bool answers(std::string_view message, std::uint64_t id) noexcept;

// Returns true if the message is a response or a batch that contains a response.
bool holds_response(std::string_view message) noexcept;

// Returns true if the first non-whitespace byte is '['.
bool is_batch(std::string_view message) noexcept;

// Returns true if the text contains the word. Case-insensitive for ASCII.
bool mentions(std::string_view text, std::string_view word) noexcept;

}  // namespace connector_http
