// Converts between MessagePack and JSON without building a tree. Header only; C++20.
//
// Existing libraries are not used. Debian's msgpack packages cannot be installed together with
// Boost 1.81. The C library builds a tree, and five bytes that announce millions of elements are
// enough to make it allocate memory for all of them. This converter allocates no memory for
// announced sizes, and limits the nesting depth and the size of the result.
//
// MCP uses maps with string keys, arrays, strings, numbers, true, false and nil, all of which exist
// in both formats. Binary data and extension types have no equivalent in JSON and are rejected.
#pragma once

#include <bulkhead/cpp/json.hpp>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace bh::msgpack {

// Size limit for the JSON. A single packed byte may become six characters (\u0001).
inline constexpr std::size_t max_json = 64u << 20;

namespace detail {

inline void put_byte(std::string *out, unsigned byte) {
  *out += static_cast<char>(byte & 0xFF);
}
// Appends the lower `bytes` bytes of `value`, most significant byte first.
inline void put_number(std::string *out, std::uint64_t value, unsigned bytes) {
  for (unsigned i = bytes; i-- > 0;) put_byte(out, static_cast<unsigned>(value >> (8 * i)));
}

// Converts one packed value to JSON.
class Reader {
 public:
  Reader(std::string_view packed, std::string *out, std::size_t bound)
      : p_(packed.data()), end_(packed.data() + packed.size()), out_(*out), bound_(bound) {}

  // Returns null on success, and an error message otherwise.
  const char *run() {
    do {
      if (out_.size() > bound_) return "its JSON would be too large";
      if (const char *why = next()) return why;
    } while (!open_.empty());
    return p_ == end_ ? nullptr : "bytes follow the value";
  }

 private:
  struct Open {
    std::uint64_t left;  // remaining values; a map member is two values
    bool map;
  };

  bool has(std::uint64_t n) const noexcept { return static_cast<std::uint64_t>(end_ - p_) >= n; }
  // Requires has(bytes).
  std::uint64_t take(unsigned bytes) noexcept {
    std::uint64_t value = 0;
    for (unsigned i = 0; i < bytes; ++i) value = value << 8 | static_cast<unsigned char>(*p_++);
    return value;
  }

  // Reads one value, or the head of a container, and appends it to the JSON after the separator
  // that it needs. Then closes all containers that are complete.
  const char *next() {
    bool key = false;
    if (!open_.empty()) {
      Open &top = open_.back();
      key = top.map && top.left % 2 == 0;
      if (top.map && !key)
        out_ += ':';
      else if (out_.back() != '[' && out_.back() != '{')
        out_ += ',';
      --top.left;
    }
    const std::size_t depth = open_.size();
    if (const char *why = value(key)) return why;
    if (open_.size() > depth && open_.back().left > 0) return nullptr;
    while (!open_.empty() && open_.back().left == 0) {
      out_ += open_.back().map ? '}' : ']';
      open_.pop_back();
    }
    return nullptr;
  }

  const char *value(bool key) {
    static constexpr const char *cut = "it is cut off";
    if (!has(1)) return cut;
    const auto type = static_cast<unsigned char>(*p_++);
    if (type >= 0xA0 && type <= 0xBF) return text(type & 0x1F);
    if (type >= 0xD9 && type <= 0xDB) {
      const unsigned bytes = 1u << (type - 0xD9);
      return has(bytes) ? text(take(bytes)) : cut;
    }
    if (key) return "a map key is not text";
    if (type <= 0x7F) return integer(type);
    if (type >= 0xE0) return negative(static_cast<std::int8_t>(type));
    if (type <= 0x8F) return open(type & 0x0F, true);
    if (type <= 0x9F) return open(type & 0x0F, false);
    switch (type) {
      case 0xC0:
        return word("null");
      case 0xC2:
        return word("false");
      case 0xC3:
        return word("true");
      case 0xCA:
        return has(4) ? real(std::bit_cast<float>(static_cast<std::uint32_t>(take(4)))) : cut;
      case 0xCB:
        return has(8) ? real(std::bit_cast<double>(take(8))) : cut;
      case 0xDC:
      case 0xDD:
      case 0xDE:
      case 0xDF: {
        const unsigned bytes = (type & 1) != 0 ? 4 : 2;
        return has(bytes) ? open(take(bytes), type >= 0xDE) : cut;
      }
      default:
        break;
    }
    if (type >= 0xCC && type <= 0xD3) return wide_integer(type);
    return "it contains binary data or an extension type, which JSON cannot represent";
  }

  const char *wide_integer(unsigned type) {
    const unsigned bytes = 1u << (type & 3);
    if (!has(bytes)) return "it is cut off";
    const std::uint64_t raw = take(bytes);
    if (type <= 0xCF) return integer(raw);
    const unsigned unused = 64 - 8 * bytes;
    return negative(static_cast<std::int64_t>(raw << unused) >> unused);
  }

  template <class Number>
  const char *print(Number value) {
    char digits[32];
    const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
    out_.append(digits, static_cast<std::size_t>(end - digits));
    return nullptr;
  }
  const char *integer(std::uint64_t value) { return print(value); }
  const char *negative(std::int64_t value) { return print(value); }

  template <class Real>
  const char *real(Real value) {
    if (!std::isfinite(value)) return "it contains a number that is not finite";
    const std::size_t at = out_.size();
    print(value);
    // A floating-point number must not become an integer in JSON, so ".0" is added.
    if (out_.find_first_of(".e", at) == std::string::npos) out_ += ".0";
    return nullptr;
  }

  const char *word(std::string_view text) {
    out_ += text;
    return nullptr;
  }

  const char *text(std::uint64_t n) {
    if (!has(n)) return "it is cut off";
    const std::string_view text(p_, static_cast<std::size_t>(n));
    if (!is_utf8(text)) return "it contains text that is not UTF-8";
    json::append_quoted(&out_, text);
    p_ += n;
    return nullptr;
  }

  const char *open(std::uint64_t count, bool map) {
    if (open_.size() == json::max_depth) return "it is nested too deeply";
    const std::uint64_t values = map ? 2 * count : count;
    if (!has(values)) return "it is cut off";  // each value takes at least one byte
    out_ += map ? '{' : '[';
    open_.push_back({values, map});
    return nullptr;
  }

  const char *p_;
  const char *const end_;
  std::string &out_;
  const std::size_t bound_;
  std::vector<Open> open_;
};

// First pass: counts the elements of each container, because MessagePack stores their number before
// the elements. The counts are in the order in which the containers begin.
struct Counter {
  std::vector<std::uint32_t> counts;
  std::vector<std::size_t> open;

  void element() {
    if (!open.empty()) ++counts[open.back()];
  }
  void begin() {
    element();
    open.push_back(counts.size());
    counts.push_back(0);
  }
  void begin_object() { begin(); }
  void begin_array() { begin(); }
  void end_object() { open.pop_back(); }
  void end_array() { open.pop_back(); }
  // Keys and values are counted separately, so the count for an object is halved when it is
  // written.
  void key(std::string_view) { element(); }
  void string(std::string_view) { element(); }
  void number(std::string_view) { element(); }
  void word(std::string_view) { element(); }
};

// Second pass: writes the packed values.
struct Packer {
  std::string &out;
  const std::vector<std::uint32_t> &counts;
  std::size_t next = 0;
  const char *why = nullptr;

  void begin_object() { head(counts[next++] / 2, 0x80, 0xDE); }
  void begin_array() { head(counts[next++], 0x90, 0xDC); }
  void end_object() {}
  void end_array() {}
  void head(std::uint32_t n, unsigned small, unsigned wide) {
    if (n < 16) return put_byte(&out, small | n);
    const bool two = n <= 0xFFFF;
    put_byte(&out, two ? wide : wide + 1);
    put_number(&out, n, two ? 2 : 4);
  }

  void key(std::string_view token) { string(token); }
  void string(std::string_view token) {
    if (token.find('\\') == std::string_view::npos) {
      return text(token.substr(1, token.size() - 2));
    }
    text(json::unquote(token));
  }
  void text(std::string_view value) {
    const std::size_t n = value.size();
    if (n < 32) {
      put_byte(&out, static_cast<unsigned>(0xA0 | n));
    } else {
      const unsigned step = n <= 0xFF ? 0 : n <= 0xFFFF ? 1 : 2;
      put_byte(&out, 0xD9 + step);
      put_number(&out, n, 1u << step);
    }
    out += value;
  }

  void word(std::string_view value) {
    put_byte(&out, value == "null" ? 0xC0 : value == "true" ? 0xC3 : 0xC2);
  }

  void number(std::string_view token) {
    const char *const end = token.data() + token.size();
    const bool whole = token.find_first_of(".eE") == std::string_view::npos && token != "-0";
    std::uint64_t natural = 0;
    std::int64_t negative = 0;
    if (whole && token.front() != '-' &&
        std::from_chars(token.data(), end, natural).ec == std::errc()) {
      return positive(natural);
    }
    if (whole && std::from_chars(token.data(), end, negative).ec == std::errc()) {
      return below_zero(negative);
    }
    double real = 0;
    const auto read = std::from_chars(token.data(), end, real);
    if (read.ec == std::errc::result_out_of_range && !too_small(token)) {
      why = "it contains a number that a double cannot represent";
    }
    put_byte(&out, 0xCB);
    put_number(&out, std::bit_cast<std::uint64_t>(real), 8);
  }
  // Returns true if the number underflows, and false if it overflows. from_chars reports both with
  // the same error and leaves the value at zero, which is correct for underflow. A number
  // underflows if, once the exponent has been applied, its first nonzero digit is after the decimal
  // point.
  static bool too_small(std::string_view token) {
    const std::size_t e = token.find_first_of("eE");
    std::string_view digits = token.substr(0, e);
    if (digits.starts_with('-')) digits.remove_prefix(1);
    const std::size_t whole = std::min(digits.find('.'), digits.size());
    const std::size_t first = digits.find_first_of("123456789");
    if (first == std::string_view::npos) return true;
    auto magnitude = static_cast<std::int64_t>(whole) - static_cast<std::int64_t>(first);
    if (e != std::string_view::npos) {
      const std::string_view text = token.substr(token[e + 1] == '+' ? e + 2 : e + 1);
      std::int32_t exponent = 0;
      if (std::from_chars(text.data(), text.data() + text.size(), exponent).ec != std::errc()) {
        return text.front() == '-';
      }
      magnitude += exponent;
    }
    return magnitude < 0;
  }
  void positive(std::uint64_t value) {
    if (value < 0x80) return put_byte(&out, static_cast<unsigned>(value));
    const unsigned step = value <= 0xFF ? 0 : value <= 0xFFFF ? 1 : value <= 0xFFFFFFFF ? 2 : 3;
    put_byte(&out, 0xCC + step);
    put_number(&out, value, 1u << step);
  }
  void below_zero(std::int64_t value) {
    if (value >= -32) return put_byte(&out, static_cast<unsigned>(value));
    const unsigned step = value >= INT8_MIN    ? 0
                          : value >= INT16_MIN ? 1
                          : value >= INT32_MIN ? 2
                                               : 3;
    put_byte(&out, 0xD0 + step);
    put_number(&out, static_cast<std::uint64_t>(value), 1u << step);
  }
};

}  // namespace detail

// Converts a packed value to JSON and appends it to *out. Returns null on success. Otherwise,
// returns an error message; the JSON in *out is then incomplete.
inline const char *to_json(std::string_view packed, std::string *out,
                           std::size_t bound = max_json) {
  return detail::Reader(packed, out, bound).run();
}

// Converts JSON text to a packed value and appends it to *out. Integers from -2^63 to 2^64-1 remain
// integers; all other numbers become doubles. Returns null on success, and an error message
// otherwise.
inline const char *from_json(std::string_view text, std::string *out) {
  detail::Counter counter;
  if (!json::walk(text, counter)) return "it is not JSON";
  detail::Packer packer{*out, counter.counts};
  json::walk(text, packer);
  return packer.why;
}

}  // namespace bh::msgpack
