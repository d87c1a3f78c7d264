// Scans the top level of JSON-RPC messages without building a tree. Used to detect the response to
// a request, because the event stream of the POST is no longer needed after that. The response may
// be part of a batch (revision 2025-03-26). The host validates the messages itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace connector_http {

// Returns true if the message is a response: it has a "result" or "error" member, and no "method"
// member before that. Stops scanning at the first of these members, because long values usually
// follow.
bool is_response(std::string_view message) noexcept;

// Returns true if the message is a response and its ID is a string or a number.
bool answers_a_request(std::string_view message) noexcept;

// Returns true if the message is a response to the request with this ID.
bool answers(std::string_view message, std::uint64_t id) noexcept;

// Returns true if the message is a response, or a batch that contains a response.
bool holds_response(std::string_view message) noexcept;

// Returns true if the first character that is not white space is '['.
bool is_batch(std::string_view message) noexcept;

// Returns true if `text` contains `word`, ignoring ASCII case.
bool mentions(std::string_view text, std::string_view word) noexcept;

}  // namespace connector_http
