#include "stdio-lines/text.hpp"

#include <bulkhead/cpp/text.hpp>

#include <cstring>

namespace stdio_lines {
namespace {

unsigned char at(std::string_view s, std::size_t i) {
  return i < s.size() ? static_cast<unsigned char>(s[i]) : 0;
}

// If a C1 control character (U+0080 to U+009F) starts at i, returns it. Otherwise, returns 0.
unsigned char c1_at(std::string_view s, std::size_t i) {
  const unsigned char second = at(s, i) == 0xC2 ? at(s, i + 1) : 0;
  return second >= 0x80 && second < 0xA0 ? second : 0;
}

// Skips the parameters and the final character of a control sequence ("ESC [" or U+009B).
std::size_t skip_control(std::string_view s, std::size_t i) {
  while (i < s.size() && at(s, i) >= 0x20 && at(s, i) < 0x40) ++i;
  return i + 1;
}

// Skips the string of a title or link sequence, up to and including BEL, "ESC \" or U+009C, but not
// beyond the end of the line.
std::size_t skip_string(std::string_view s, std::size_t i) {
  for (; i < s.size() && s[i] != '\n'; ++i) {
    if (s[i] == '\a') return i + 1;
    if (c1_at(s, i) == 0x9C) return i + 2;
    if (s[i] == '\x1B') return at(s, i + 1) == '\\' || i + 1 == s.size() ? i + 2 : i;
  }
  return i < s.size() ? i : i + 1;
}

}  // namespace

std::size_t skip_escape(std::string_view s, std::size_t i) noexcept {
  // Other C1 control characters count as single characters: few terminals interpret them, and a
  // server must not hide the rest of its line from the search for credentials.
  if (c1_at(s, i) == 0x9B) return skip_control(s, i + 2);
  if (at(s, i) != 0x1B) return i;
  const unsigned char kind = at(s, i + 1);
  if (kind == '[') return skip_control(s, i + 2);
  if (kind == ']' || kind == 'P' || kind == 'X' || kind == '^' || kind == '_') {
    return skip_string(s, i + 2);
  }
  for (++i; i < s.size() && at(s, i) >= 0x20 && at(s, i) < 0x30;) ++i;  // such as "ESC ( B"
  return i < s.size() && at(s, i) < 0x20 ? i : i + 1;
}

std::string cleaned(std::string_view text, std::size_t max_bytes) {
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    if (const std::size_t behind = skip_escape(text, i); behind != i) {
      i = behind;
      continue;
    }
    std::size_t n = 0;
    bh::first_character(text.substr(i), &n);
    const std::string character = bh::one_line(text.substr(i, n), n);
    if (out.size() + character.size() > max_bytes) break;
    out += character;
    i += n;
  }
  return out;
}

}  // namespace stdio_lines
