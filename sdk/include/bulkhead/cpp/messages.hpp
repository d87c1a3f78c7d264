// Validates message headers, and creates structs of messages and failures. Header only;
// C++20.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "../abi/ext/connector.h"
#include "../abi/ext/transport.h"
#include "basics.hpp"

namespace bh {

// For each byte value, whether a token and whether a header value may contain it.
struct HeaderBytes {
  bool token[256] = {}, value[256] = {};
  constexpr HeaderBytes() {
    for (const unsigned char c : std::string_view("!#$%&'*+-.^_`|~0123456789")) token[c] = true;
    for (int c = 'a'; c <= 'z'; ++c) token[c] = token[c - 'a' + 'A'] = true;
    for (int c = 0; c < 256; ++c) value[c] = (c >= 0x20 || c == '\t') && c != 0x7F;
  }
};
inline constexpr HeaderBytes header_bytes;

// Returns true if the text is a token (RFC 9110, section 5.6.2). Header names must be tokens.
inline bool is_token(std::string_view text) noexcept {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return header_bytes.token[static_cast<unsigned char>(c)];
  });
}

// Returns true if the text is a valid header value: it must not contain control characters other
// than tabs.
inline bool is_header_value(std::string_view text) noexcept {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return header_bytes.value[static_cast<unsigned char>(c)]; });
}

// Checks headers against the rules of bh_header. Returns BH_E_INVALID if a header is invalid. The
// error message names the header but contains no values.
inline bh_status check_headers(std::span<const bh_header> headers, bh_error *error) {
  if (headers.size() > BH_HEADER_COUNT) {
    return fail(error, BH_E_INVALID,
                "a message has at most " + std::to_string(BH_HEADER_COUNT) + " headers, not " +
                    std::to_string(headers.size()));
  }
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < headers.size(); ++i) {
    if (!is_token(view(headers[i].name))) {
      return fail(error, BH_E_INVALID,
                  "the name of header " + std::to_string(i + 1) + " is not a token (RFC 9110)");
    }
    if (!is_header_value(view(headers[i].value))) {
      return fail(error, BH_E_INVALID,
                  "the value of header \"" + std::string(view(headers[i].name).substr(0, 100)) +
                      "\" contains a control character");
    }
    bytes += headers[i].name.n + headers[i].value.n;
  }
  if (bytes <= BH_HEADER_BYTES) return BH_OK;
  return fail(error, BH_E_INVALID,
              "the headers of a message have at most " + std::to_string(BH_HEADER_BYTES) +
                  " bytes, not " + std::to_string(bytes));
}

inline std::span<const bh_header> headers(const bh_incoming &message) noexcept {
  return {message.headers, message.header_count};
}

inline std::span<const bh_header> headers(const bh_lane_message &message) noexcept {
  return {message.headers, message.header_count};
}

// Describes a message in a session, without headers. Borrows the text.
inline bh_incoming incoming(bh_session session, std::uint64_t stream,
                            std::string_view text) noexcept {
  bh_incoming message{};
  message.size = sizeof message;
  message.session = session;
  message.stream = stream;
  message.message = str(text);
  return message;
}

// Describes a failure that did not result from an HTTP response. Borrows the error.
inline bh_lane_failure lane_failure(const bh_error &error) noexcept {
  bh_lane_failure failure{};
  failure.size = sizeof failure;
  failure.error = &error;
  return failure;
}

}  // namespace bh
