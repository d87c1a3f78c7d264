#include "stdio-lines/text.hpp"

#include <bulkhead/cpp/text.hpp>

#include <cstring>

namespace stdio_lines {
namespace {

unsigned char at(std::string_view s, std::size_t i) {
  return i < s.size() ? static_cast<unsigned char>(s[i]) : 0;
}

// Skips the parameters and the final character of a control sequence ("ESC [" or U+009B).
std::size_t skip_control(std::string_view s, std::size_t i) {
  while (i < s.size() && at(s, i) >= 0x20 && at(s, i) < 0x40) ++i;
  return i + 1;
}

// Skips the string of a title or link sequence, up to and including BEL or "ESC \", but not beyond
// the end of the line.
std::size_t skip_string(std::string_view s, std::size_t i) {
  for (; i < s.size() && s[i] != '\n'; ++i) {
    if (s[i] == '\a') return i + 1;
    if (s[i] == '\x1B') return at(s, i + 1) == '\\' || i + 1 == s.size() ? i + 2 : i;
  }
  return i < s.size() ? i : i + 1;
}

}  // namespace

std::size_t skip_escape(std::string_view s, std::size_t i) noexcept {
  if (at(s, i) == 0xC2 && at(s, i + 1) == 0x9B) return skip_control(s, i + 2);
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
    const std::size_t n = bh::utf8_length(text.substr(i));
    if (out.size() + (n == 0 ? 1 : n) > max_bytes) break;
    if (n == 0) {
      out += '?';
    } else if (n == 1 && (at(text, i) < 0x20 || at(text, i) == 0x7F)) {
      out += ' ';
    } else {
      out += text.substr(i, n);
    }
    i += n == 0 ? 1 : n;
  }
  return out;
}

}  // namespace stdio_lines
