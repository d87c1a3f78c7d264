// Reads member names: unescapes them character by character, and computes their hashes. Names that
// some decoders treat as equal have the same hash.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "bulkhead/cpp/text.hpp"

namespace bulkhead::mcp::json {

// Iterates over the unescaped characters of a validated string token (without quotes). A lone
// surrogate becomes U+FFFD.
class Unescape {
 public:
  explicit Unescape(std::string_view inside) noexcept
      : at_(inside.data()), end_(inside.data() + inside.size()) {}

  bool done() const noexcept { return at_ == end_; }
  char32_t next() noexcept;

 private:
  static unsigned hex(const char *p) noexcept {
    unsigned value = 0;
    for (int i = 0; i < 4; ++i) {
      const unsigned c = static_cast<unsigned char>(p[i]);
      value = value * 16 + (c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
    }
    return value;
  }
  char32_t escape() noexcept;

  const char *at_;
  const char *end_;
};

inline char32_t Unescape::escape() noexcept {
  const char c = at_[1];
  at_ += 2;
  switch (c) {
    case 'b':
      return '\b';
    case 'f':
      return '\f';
    case 'n':
      return '\n';
    case 'r':
      return '\r';
    case 't':
      return '\t';
    case 'u':
      break;
    default:
      return static_cast<unsigned char>(c);
  }
  const unsigned unit = hex(at_);
  at_ += 4;
  if (unit < 0xD800 || unit > 0xDFFF) return unit;
  if (unit <= 0xDBFF && end_ - at_ >= 6 && at_[0] == '\\' && at_[1] == 'u') {
    const unsigned low = hex(at_ + 2);
    if (low >= 0xDC00 && low <= 0xDFFF) {
      at_ += 6;
      return 0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00);
    }
  }
  return 0xFFFD;
}

inline char32_t Unescape::next() noexcept {
  const auto byte = [this](int i) { return static_cast<unsigned char>(at_[i]); };
  const auto low6 = [&](int i) { return static_cast<char32_t>(byte(i) & 0x3F); };
  const unsigned a = byte(0);
  if (a == '\\') return escape();
  if (a < 0x80) {
    ++at_;
    return a;
  }
  char32_t c = 0;
  if (a < 0xE0) {
    c = static_cast<char32_t>(a & 0x1F) << 6 | low6(1);
    at_ += 2;
  } else if (a < 0xF0) {
    c = static_cast<char32_t>(a & 0x0F) << 12 | low6(1) << 6 | low6(2);
    at_ += 3;
  } else {
    c = static_cast<char32_t>(a & 0x07) << 18 | low6(1) << 12 | low6(2) << 6 | low6(3);
    at_ += 4;
  }
  return c;
}

constexpr char32_t fold(char32_t c) noexcept {
  if (c >= 'A' && c <= 'Z') return c + ('a' - 'A');
  if (c == 0x17F) return 's';
  if (c == 0x212A) return 'k';
  return c;
}

// Computes a 64-bit hash from 8-byte little-endian words.
static_assert(std::endian::native == std::endian::little);
class NameHash {
 public:
  constexpr void add_byte(unsigned char b) noexcept {
    word_ |= static_cast<std::uint64_t>(b) << (size_ % 8 * 8);
    if (++size_ % 8 == 0) flush();
  }
  constexpr void add_word(std::uint64_t word) noexcept {  // must not follow an incomplete word
    word_ = word;
    size_ += 8;
    flush();
  }
  constexpr void add_last(std::uint64_t word, unsigned bytes) noexcept {
    word_ = word;
    size_ += bytes;
  }
  constexpr std::uint64_t value() const noexcept {
    std::uint64_t h = (mix(hash_ ^ word_) ^ size_) * prime;
    return h ^ h >> 32;
  }

 private:
  static constexpr std::uint64_t prime = 0x9E3779B97F4A7C15u;
  static constexpr std::uint64_t mix(std::uint64_t h) noexcept {
    h *= prime;
    return h ^ h >> 29;
  }
  constexpr void flush() noexcept {
    hash_ = mix(hash_ ^ word_);
    word_ = 0;
  }
  std::uint64_t hash_ = 0x243F6A8885A308D3u;
  std::uint64_t word_ = 0;
  std::uint64_t size_ = 0;
};

// The hash of a name that is known at compile time. The name must be ASCII without escape
// sequences.
constexpr std::uint64_t folded_hash_of(std::string_view name) noexcept {
  NameHash hash;
  for (const char c : name) {
    hash.add_byte(static_cast<unsigned char>(fold(static_cast<unsigned char>(c))));
  }
  return hash.value();
}

inline std::uint64_t folded_hash_slow(std::string_view inside) noexcept {
  NameHash hash;
  for (Unescape text(inside); !text.done();) {
    char bytes[4];
    const std::size_t n = bh::encode_utf8(fold(text.next()), bytes);
    for (std::size_t i = 0; i < n; ++i) hash.add_byte(static_cast<unsigned char>(bytes[i]));
  }
  return hash.value();
}

// Returns the hash of a validated string token (without quotes). Reads 8 bytes at a time, possibly
// past the end of the token but never past `readable`, which is the end of the readable memory.
// Sets *as_it_is to true if the token is ASCII without escape sequences, which means that its bytes
// need no unescaping.
inline std::uint64_t folded_hash(std::string_view inside, const char *readable,
                                 bool *as_it_is) noexcept {
  constexpr std::uint64_t ones = 0x0101010101010101u;
  constexpr std::uint64_t tops = ones * 0x80;
  NameHash hash;
  const char *p = inside.data();
  std::size_t left = inside.size();
  *as_it_is = false;
  while (left > 0) {
    std::uint64_t word = 0;
    if (readable - p >= 8) {
      std::memcpy(&word, p, 8);
      if (left < 8) word &= ~std::uint64_t{0} >> (64 - left * 8);
    } else {
      std::memcpy(&word, p, left < 8 ? left : 8);
    }
    const std::uint64_t slash = word ^ ones * '\\';
    if (((word | ((slash - ones) & ~slash)) & tops) != 0) return folded_hash_slow(inside);
    const std::uint64_t from_a = word + ones * (0x80 - 'A');
    const std::uint64_t above_z = word + ones * (0x80 - 'Z' - 1);
    word |= (from_a & ~above_z & tops) >> 2;  // sets 0x20 in each byte from A to Z
    if (left < 8) {
      hash.add_last(word, static_cast<unsigned>(left));
      break;
    }
    hash.add_word(word);
    p += 8;
    left -= 8;
  }
  *as_it_is = true;
  return hash.value();
}

// Returns true if the unescaped token equals `text`.
inline bool same_text(std::string_view inside, std::string_view text) noexcept {
  if (inside.find('\\') == std::string_view::npos) return inside == text;
  std::size_t at = 0;
  for (Unescape a(inside); !a.done();) {
    char bytes[4];
    const std::size_t n = bh::encode_utf8(a.next(), bytes);
    if (text.size() - at < n || std::memcmp(text.data() + at, bytes, n) != 0) return false;
    at += n;
  }
  return at == text.size();
}

}  // namespace bulkhead::mcp::json
