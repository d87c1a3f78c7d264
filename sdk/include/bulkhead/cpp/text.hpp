// Text functions: ASCII case, hexadecimal digits, UTF-8, and text in log and error messages. No
// function depends on the locale. Header only; C++20; includes no other SDK header.
//
// Thread-safe.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <system_error>

namespace bh {

// ---- ASCII ----------------------------------------------------------------------------------

constexpr bool is_digit(char c) noexcept {
  return c >= '0' && c <= '9';
}
constexpr bool is_letter(char c) noexcept {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
constexpr bool is_letter_or_digit(char c) noexcept {
  return is_letter(c) || is_digit(c);
}

// Returns the value of a hexadecimal digit, or -1 for any other character.
constexpr int hex_value(char c) noexcept {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// Returns true if all characters are lowercase hexadecimal digits.
constexpr bool is_lower_hex(std::string_view text) noexcept {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return is_digit(c) || (c >= 'a' && c <= 'f'); });
}

// Returns the bytes as lowercase hexadecimal digits.
inline std::string hex(std::string_view bytes) {
  constexpr char digits[] = "0123456789abcdef";
  std::string out(2 * bytes.size(), '\0');
  char *to = out.data();
  for (const char c : bytes) {
    *to++ = digits[static_cast<unsigned char>(c) >> 4];
    *to++ = digits[static_cast<unsigned char>(c) & 15];
  }
  return out;
}

constexpr char lower(char c) noexcept {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
}

inline std::string lowered(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), lower);
  return out;
}

constexpr bool equal_ignoring_case(std::string_view a, std::string_view b) noexcept {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] != b[i] && lower(a[i]) != lower(b[i])) return false;
  }
  return true;
}

constexpr bool starts_with_ignoring_case(std::string_view text, std::string_view prefix) noexcept {
  return equal_ignoring_case(text.substr(0, prefix.size()), prefix);
}

// ---- UTF-8 (RFC 3629: no overlong forms, no surrogates, at most U+10FFFF) --------------------

inline constexpr char32_t replacement_character = 0xFFFD;
inline constexpr std::string_view replacement_utf8 = "\xEF\xBF\xBD";

constexpr bool is_utf8_tail(char c) noexcept {
  return (static_cast<unsigned char>(c) & 0xC0) == 0x80;
}

// If the text starts with a well-formed character, returns its size in bytes. Otherwise, returns 0.
constexpr std::size_t utf8_length(std::string_view text) noexcept {
  if (text.empty()) return 0;
  const auto byte = [text](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned lead = byte(0);
  if (lead < 0x80) return 1;
  const std::size_t n = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < n) return 0;
  unsigned least = 0x80, most = 0xBF;  // range of the second byte
  if (lead == 0xE0) least = 0xA0;
  if (lead == 0xED) most = 0x9F;
  if (lead == 0xF0) least = 0x90;
  if (lead == 0xF4) most = 0x8F;
  if (byte(1) < least || byte(1) > most) return 0;
  for (std::size_t i = 2; i < n; ++i) {
    if (!is_utf8_tail(text[i])) return 0;
  }
  return n;
}

// Returns the first character of the text and sets *size to its size in bytes. If the text does not
// start with a well-formed character, returns U+FFFD and sets *size to 1. The text must not be
// empty.
constexpr char32_t first_character(std::string_view text, std::size_t *size) noexcept {
  const std::size_t n = utf8_length(text);
  *size = n == 0 ? 1 : n;
  if (n == 0) return replacement_character;
  const unsigned lead = static_cast<unsigned char>(text[0]);
  char32_t c = n == 1 ? lead : lead & (0x7Fu >> n);
  for (std::size_t i = 1; i < n; ++i) c = c << 6 | (static_cast<unsigned char>(text[i]) & 0x3Fu);
  return c;
}

inline bool is_utf8(std::string_view text) noexcept {
  while (!text.empty()) {
    std::uint64_t eight = 0;  // for ASCII, eight bytes are checked at a time
    if (text.size() >= sizeof eight) {
      std::memcpy(&eight, text.data(), sizeof eight);
      if ((eight & 0x8080808080808080u) == 0) {
        text.remove_prefix(sizeof eight);
        continue;
      }
    }
    const std::size_t n = utf8_length(text);
    if (n == 0) return false;
    text.remove_prefix(n);
  }
  return true;
}

// Returns the number of characters in the text, which must be well-formed UTF-8.
inline std::size_t count_characters(std::string_view text) noexcept {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return !is_utf8_tail(c); }));
}

// Returns the largest n <= limit such that truncating the text to n bytes does not split a
// character. If the limit is beyond the end, returns the size of the text. If no character starts
// at the limit or in the three bytes before it, the text is not UTF-8, and the limit is returned.
constexpr std::size_t character_boundary(std::string_view text, std::size_t limit) noexcept {
  if (limit >= text.size()) return text.size();
  std::size_t n = limit;
  for (int i = 0; i < 3 && n > 0 && is_utf8_tail(text[n]); ++i) --n;
  return is_utf8_tail(text[n]) ? limit : n;
}

// Returns the longest prefix that has at most `limit` bytes and does not end within a character.
constexpr std::string_view cut_text(std::string_view text, std::size_t limit) noexcept {
  return text.substr(0, character_boundary(text, limit));
}

// Writes c (at most U+10FFFF) as UTF-8. Returns the number of bytes, which is at most 4.
constexpr std::size_t encode_utf8(char32_t c, char *out) noexcept {
  const auto tail = [c](unsigned shift) { return static_cast<char>(0x80u | (c >> shift & 0x3Fu)); };
  if (c < 0x80) {
    out[0] = static_cast<char>(c);
    return 1;
  }
  if (c < 0x800) {
    out[0] = static_cast<char>(0xC0u | c >> 6);
    out[1] = tail(0);
    return 2;
  }
  if (c < 0x10000) {
    out[0] = static_cast<char>(0xE0u | c >> 12);
    out[1] = tail(6);
    out[2] = tail(0);
    return 3;
  }
  out[0] = static_cast<char>(0xF0u | c >> 18);
  out[1] = tail(12);
  out[2] = tail(6);
  out[3] = tail(0);
  return 4;
}

inline void append_utf8(std::string *out, char32_t c) {
  char bytes[4];
  out->append(bytes, encode_utf8(c, bytes));
}

// Replaces each byte that is not part of a well-formed character with U+FFFD.
inline std::string repaired_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::size_t n = utf8_length(text);
    out += n == 0 ? replacement_utf8 : text.substr(0, n);
    text.remove_prefix(n == 0 ? 1 : n);
  }
  return out;
}

// ---- text in log and error messages --------------------------------------------------------

// Returns true if `c` is a control character (C0, DEL, C1).
constexpr bool is_control(char32_t c) noexcept {
  return c < 0x20 || (c >= 0x7F && c < 0xA0);
}

// Returns true if `c` must not reach a terminal or a log: it is a control character, a line or
// paragraph separator, or changes the text direction, which can make one name look like another.
constexpr bool is_unprintable(char32_t c) noexcept {
  return is_control(c) || c == 0x2028 || c == 0x2029 || (c >= 0x202A && c <= 0x202E) ||
         (c >= 0x2066 && c <= 0x2069);
}

// Replaces unprintable characters and bytes that are not UTF-8 with '?'. If keep_lines is true,
// newlines and tabs are kept.
inline std::string printable(std::string_view text, bool keep_lines = false) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    std::size_t size = 0;
    const char32_t c = first_character(text, &size);
    const bool malformed = size == 1 && c == replacement_character;
    const bool kept = keep_lines && (c == '\n' || c == '\t');
    out += malformed || (is_unprintable(c) && !kept) ? "?" : text.substr(0, size);
    text.remove_prefix(size);
  }
  return out;
}

// Converts text to a single line. Unprintable characters become spaces, and bytes that are not
// UTF-8 become '?'. The result is truncated to max_bytes at a character boundary.
inline std::string one_line(std::string_view text, std::size_t max_bytes) {
  std::string out;
  out.reserve(std::min(text.size(), max_bytes));
  while (!text.empty()) {
    std::size_t size = 0;
    const char32_t c = first_character(text, &size);
    const bool malformed = size == 1 && c == replacement_character;
    const std::string_view shown = malformed ? "?" : is_unprintable(c) ? " " : text.substr(0, size);
    if (out.size() + shown.size() > max_bytes) break;
    out += shown;
    text.remove_prefix(size);
  }
  return out;
}

// Quotes a name or value: "text". If it is longer than max_bytes, it is truncated: "text...".
inline std::string in_quotes(std::string_view text, std::size_t max_bytes = std::string::npos) {
  const std::string_view shown = cut_text(text, max_bytes);
  std::string out;
  out.reserve(shown.size() + 5);
  out += '"';
  out += shown;
  if (shown.size() < text.size()) out += "...";
  return out += '"';
}

// Returns the description of an errno value, such as "No such file or directory". Unlike
// strerror(), this function is thread-safe.
inline std::string error_name(int error) {
#if defined(__GLIBC__) && defined(_GNU_SOURCE)
#if __GLIBC_PREREQ(2, 32)
  if (const char *text = ::strerrordesc_np(error); text != nullptr) return text;
  return "error " + std::to_string(error);
#else
  return std::generic_category().message(error);
#endif
#else
  return std::generic_category().message(error);
#endif
}

}  // namespace bh
