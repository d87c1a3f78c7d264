#include "builtin-files/encoding.hpp"

#include <cstdint>

namespace builtin_files {
namespace {

constexpr std::string_view digits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

int digit(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  return c == '+' ? 62 : c == '/' ? 63 : -1;
}

}  // namespace

std::string base64(std::string_view bytes) {
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const auto byte = [&](std::size_t k) -> unsigned {
      return i + k < bytes.size() ? static_cast<unsigned char>(bytes[i + k]) : 0u;
    };
    const unsigned group = byte(0) << 16 | byte(1) << 8 | byte(2);
    out += digits[group >> 18];
    out += digits[group >> 12 & 63];
    out += i + 1 < bytes.size() ? digits[group >> 6 & 63] : '=';
    out += i + 2 < bytes.size() ? digits[group & 63] : '=';
  }
  return out;
}

bool from_base64(std::string_view text, std::string *out) {
  out->clear();
  out->reserve(text.size() / 4 * 3);
  std::uint32_t bits = 0;
  unsigned count = 0;  // digits of the current group
  unsigned padding = 0;
  for (const char c : text) {
    if (c == '\n' || c == '\r') continue;
    if (c == '=') {
      ++padding;
      continue;
    }
    const int value = digit(c);
    if (value < 0 || padding > 0) return false;
    bits = bits << 6 | static_cast<std::uint32_t>(value);
    if (++count < 4) continue;
    *out += {static_cast<char>(bits >> 16), static_cast<char>(bits >> 8), static_cast<char>(bits)};
    bits = count = 0;
  }
  if (count == 0) return padding == 0;
  if (count == 1 || count + padding != 4) return false;
  bits <<= 6 * (4 - count);
  *out += static_cast<char>(bits >> 16);
  if (count == 3) *out += static_cast<char>(bits >> 8);
  return true;
}

}  // namespace builtin_files
