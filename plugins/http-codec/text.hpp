// Parses characters, names and lists in HTTP/1.1 heads. The functions treat text as ASCII, whatever
// the locale is. They are inline because they account for most of the time spent parsing a head.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <bulkhead/cpp/text.hpp>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace http_codec {

namespace detail {

constexpr std::array<bool, 256> make_token_table() {
  std::array<bool, 256> table{};
  for (unsigned c = 'a'; c <= 'z'; ++c) table[c] = table[c - 32] = true;
  for (unsigned c = '0'; c <= '9'; ++c) table[c] = true;
  for (const char c : std::string_view("!#$%&'*+-.^_`|~")) {
    table[static_cast<unsigned char>(c)] = true;
  }
  return table;
}
inline constexpr auto token_table = make_token_table();

inline std::uint64_t load_word(const char *p) noexcept {
  std::uint64_t word;
  std::memcpy(&word, p, sizeof word);
  return word;
}

}  // namespace detail

// Returns true for characters that may occur in tokens, such as methods and field names.
inline bool is_token_char(char c) noexcept {
  return detail::token_table[static_cast<unsigned char>(c)];
}

inline std::size_t token_size(std::string_view text) noexcept {
  std::size_t n = 0;
  while (n < text.size() && is_token_char(text[n])) ++n;
  return n;
}

// Returns true for control characters other than a tab. They are invalid in field values.
inline bool is_control(char c) noexcept {
  const auto u = static_cast<unsigned char>(c);
  return (u < 0x20 && u != '\t') || u == 0x7F;
}

// Returns the first control character other than a tab, or `end` if there is none. Checks eight
// bytes at a time. Only the first match in a word is reliable, so if it is a tab, the search starts
// again at the next byte.
inline const char *find_control(const char *p, const char *end) noexcept {
  constexpr std::uint64_t ones = ~std::uint64_t{0} / 255, highs = ones * 128;
  while (end - p >= 8) {
    std::uint64_t x = detail::load_word(p);
    if constexpr (std::endian::native == std::endian::big) x = __builtin_bswap64(x);
    const std::uint64_t del = x ^ (ones * 0x7F);
    const std::uint64_t marked = (((x - ones * 0x20) & ~x) | ((del - ones) & ~del)) & highs;
    if (marked == 0) {
      p += 8;
      continue;
    }
    p += std::countr_zero(marked) / 8;
    if (*p != '\t') return p;
    ++p;
  }
  while (p < end && !is_control(*p)) ++p;
  return p;
}

// Returns true if `text` equals the literal, ignoring case. `text` must not contain control
// characters, and the literal may contain only lowercase letters, digits, '-', '/' and '+'.
// Compares eight bytes at a time after setting bit 5 of each byte. This does not turn any other
// character into one that the literal may contain.
template <std::size_t N>
bool equals_lower(std::string_view text, const char (&lower)[N]) noexcept {
  constexpr std::size_t n = N - 1;
  if (text.size() != n) return false;
  std::size_t i = 0;
  for (; i + 8 <= n; i += 8) {
    const std::uint64_t word = detail::load_word(text.data() + i) | 0x2020202020202020u;
    if (word != detail::load_word(lower + i)) return false;
  }
  for (; i < n; ++i) {
    if ((text[i] | 0x20) != lower[i]) return false;
  }
  return true;
}

// Removes spaces and tabs from both ends.
inline std::string_view trim(std::string_view text) noexcept {
  const auto blank = [](char c) { return c == ' ' || c == '\t'; };
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  return text;
}

// Calls f for each element of a comma-separated list. Parameters (after ';') and surrounding white
// space are removed.
template <class F>
void for_each_element(std::string_view list, F &&f) {
  while (!list.empty()) {
    const std::size_t comma = std::min(list.find(','), list.size());
    std::string_view element = list.substr(0, comma);
    element = trim(element.substr(0, std::min(element.find(';'), element.size())));
    if (!element.empty()) f(element);
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
}

// Returns true if `header`, the value of a Content-Type field, has this media type, with or without
// parameters. The same conditions as for equals_lower() apply.
template <std::size_t N>
bool is_media_type(std::string_view header, const char (&type)[N]) noexcept {
  return equals_lower(trim(header.substr(0, header.find(';'))), type);
}

// Parses 1 to 18 decimal digits. Returns false for any other text.
inline bool parse_decimal(std::string_view text, std::uint64_t *out) noexcept {
  if (text.empty() || text.size() > 18) return false;
  std::uint64_t value = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return false;
    value = value * 10 + static_cast<std::uint64_t>(c - '0');
  }
  *out = value;
  return true;
}

}  // namespace http_codec
