#include "plugin/text.hpp"

#include <cstring>

#include <algorithm>

namespace bulkhead {
namespace {

// Length of the well-formed UTF-8 character at the start of s, 0 if it is malformed.
std::size_t character_length(std::string_view s) noexcept {
  const auto byte = [&](std::size_t i) {
    return i < s.size() ? static_cast<unsigned char>(s[i]) : 0u;
  };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  std::size_t length = 0;
  unsigned low = 0x80, high = 0xBF;
  if (first >= 0xC2 && first <= 0xDF) {
    length = 2;
  } else if (first >= 0xE0 && first <= 0xEF) {
    length = 3;
    if (first == 0xE0) low = 0xA0;   // overlong
    if (first == 0xED) high = 0x9F;  // surrogates
  } else if (first >= 0xF0 && first <= 0xF4) {
    length = 4;
    if (first == 0xF0) low = 0x90;
    if (first == 0xF4) high = 0x8F;  // beyond U+10FFFF
  }
  if (length == 0 || byte(1) < low || byte(1) > high) return 0;
  for (std::size_t i = 2; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  return length;
}

bool is_control(std::string_view character) noexcept {
  const auto first = static_cast<unsigned char>(character[0]);
  if (first < 0x20 || first == 0x7F) return true;
  return first == 0xC2 && static_cast<unsigned char>(character[1]) < 0xA0;  // C1
}

}  // namespace

std::string clean_text(std::string_view text, std::size_t max_bytes) {
  std::string out;
  out.reserve(std::min(text.size(), max_bytes));
  while (!text.empty()) {
    const std::size_t length = character_length(text);
    const std::string_view character = text.substr(0, std::max<std::size_t>(length, 1));
    const bool plain = length != 0 && !is_control(character);
    if (out.size() + (plain ? length : 1) > max_bytes) break;
    if (plain) {
      out.append(character);
    } else {
      out.push_back(length == 0 ? '?' : ' ');
    }
    text.remove_prefix(character.size());
  }
  return out;
}

std::string error_text(const bh_error &error, std::string_view fallback) {
  const std::size_t n = std::min<std::size_t>(error.n, sizeof error.text);
  std::string text = clean_text({error.text, n}, sizeof error.text);
  return text.empty() ? std::string(fallback) : text;
}

std::string error_name(int error) {
  // The GNU variant: the text may or may not lie in the buffer.
  char buffer[128];
  return ::strerror_r(error, buffer, sizeof buffer);
}

bool is_plain_name(std::string_view name) noexcept {
  return !name.empty() && name.size() <= 64 && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  });
}

}  // namespace bulkhead
