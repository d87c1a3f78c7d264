// Definitions that masking complete and truncated text have in common.
#pragma once

#include <bulkhead/cpp/text.hpp>

#include <string_view>

namespace telemetry_sqlite {

inline constexpr std::string_view mask = "***";
// The maximum number of layers of escapes. Only malicious input exceeds it.
inline constexpr unsigned max_layers = 8;
inline constexpr std::string_view url_begin = "://", escaped_url_begin = R"(:\/\/)";

// Returns true if a token may contain the character. A backslash ends a token because it starts an
// escape sequence in JSON.
inline bool is_token_char(char c) noexcept {
  return bh::is_letter_or_digit(c) || c == '_' || c == '-' || c == '.' || c == '=' || c == '/' ||
         c == '+' || c == '~';
}

}  // namespace telemetry_sqlite
