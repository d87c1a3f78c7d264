// The two things a wire must know about a JSON-RPC message: whether it answers a request (then an
// event stream that ends has done its work), and where the elements of a batch are (revision
// 2025-03-26 allowed them). Shallow scans, no tree; the host validates the messages itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace connector_http {

// True when the top-level object has "result" or "error" and no "method" before it. Stops at the
// first of these members, which servers write in front of long values.
bool is_response(std::string_view message) noexcept;

// True when it is a response whose id is a string or a number.
bool answers_a_request(std::string_view message) noexcept;

// True when it is a response to the request with this number as id.
bool answers(std::string_view message, std::uint64_t id) noexcept;

// True when it is a response, or a batch with one in it.
bool holds_response(std::string_view message) noexcept;

// True when the first byte that counts is '['.
bool is_batch(std::string_view message) noexcept;

// Takes the next element of a batch. *at starts at 0. False at the end or where it is malformed;
// *malformed tells the two apart.
bool next_of_batch(std::string_view batch, std::size_t *at, std::string_view *element,
                   bool *malformed) noexcept;

// Case-insensitive search, ASCII only.
bool mentions(std::string_view text, std::string_view word) noexcept;

}  // namespace connector_http
