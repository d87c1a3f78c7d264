// Writes JSON (RFC 8259) by appending it to a string. Header only; C++20.
//
//   std::string out;
//   bh::json::Writer json(&out);
//   json.begin_object()
//       .member("name", "echo")
//       .member("calls", 3)
//       .key("tags").begin_array().value("a").value(true).end_array()
//       .end_object();                     // {"name":"echo","calls":3,"tags":["a",true]}
//
// Strings are escaped as in RFC 8785. Bytes that are not UTF-8 become U+FFFD, so the output is
// always valid UTF-8. RapidJSON's writer is not used because it requires a separate buffer (and
// therefore a copy of each result), does not replace invalid UTF-8, and would be a dependency of
// each plugin.
//
// Not thread-safe. Throws only if memory allocation fails.
#pragma once

#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

#include "text.hpp"

namespace bh::json {

namespace detail {

// Returns the number of bytes at the start of the text that do not have to be escaped. These are
// ASCII characters other than control characters, quotes and backslashes.
inline std::size_t plain_prefix(std::string_view text) noexcept {
  constexpr std::uint64_t ones = 0x0101010101010101u, tops = ones * 0x80u;
  std::size_t n = 0;
  for (std::uint64_t eight = 0; text.size() - n >= sizeof eight; n += sizeof eight) {
    std::memcpy(&eight, text.data() + n, sizeof eight);
    // The subtractions set the top bit of the lowest special byte. A borrow can affect only bytes
    // above that one.
    const std::uint64_t special = eight | (eight - ones * 0x20u) | ((eight ^ ones * '"') - ones) |
                                  ((eight ^ ones * '\\') - ones);
    if ((special & tops) != 0) break;
  }
  const auto plain = [](char c) {
    return static_cast<signed char>(c) >= 0x20 && c != '"' && c != '\\';
  };
  while (n < text.size() && plain(text[n])) ++n;
  return n;
}

inline void append_escape(std::string *out, char c) {
  constexpr std::string_view meant = "\"\\\b\f\n\r\t", written = "\"\\bfnrt";
  if (const std::size_t at = meant.find(c); at != meant.npos) {
    *out += '\\';
    *out += written[at];
  } else {
    out->append("\\u00").append(hex({&c, 1}));
  }
}

}  // namespace detail

// Appends a character as one or two \u escapes. Used for invisible characters.
inline void append_escaped(std::string *out, char32_t c) {
  const auto unit = [out](char32_t u) {
    const char bytes[] = {static_cast<char>(u >> 8 & 0xFFu), static_cast<char>(u & 0xFFu)};
    out->append("\\u").append(hex({bytes, sizeof bytes}));
  };
  if (c >= 0x10000) {
    unit(0xD800 + ((c - 0x10000) >> 10));
    c = 0xDC00 + ((c - 0x10000) & 0x3FF);
  }
  unit(c);
}

// Appends the text as a JSON string with quotes.
inline void append_quoted(std::string *out, std::string_view text) {
  *out += '"';
  while (!text.empty()) {
    const std::size_t plain = detail::plain_prefix(text);
    out->append(text.substr(0, plain));
    text.remove_prefix(plain);
    if (text.empty()) break;
    if (static_cast<unsigned char>(text[0]) < 0x80) {
      detail::append_escape(out, text[0]);
      text.remove_prefix(1);
      continue;
    }
    const std::size_t n = utf8_length(text);
    out->append(n == 0 ? replacement_utf8 : text.substr(0, n));
    text.remove_prefix(n == 0 ? 1 : n);
  }
  *out += '"';
}

inline std::string quoted(std::string_view text) {
  std::string out;
  out.reserve(text.size() + 2);
  append_quoted(&out, text);
  return out;
}

// JSON text that is used as a value: json.member("result", Raw{text}). It must be valid JSON.
struct Raw {
  std::string_view json;
};

// Appends a value: a string, number, bool, nullptr or Raw, or a range of these, which becomes an
// array. Numbers that JSON cannot represent (infinity, NaN) become null.
template <class T>
void append_value(std::string *out, const T &value) {
  if constexpr (std::is_same_v<T, Raw>) {
    out->append(value.json);
  } else if constexpr (std::is_same_v<T, std::nullptr_t>) {
    out->append("null");
  } else if constexpr (std::is_same_v<T, bool>) {
    out->append(value ? "true" : "false");
  } else if constexpr (std::is_arithmetic_v<T>) {
    static_assert(!std::is_same_v<T, char>,
                  "ambiguous char: cast it to a one-byte string or a number");
    if constexpr (std::is_floating_point_v<T>) {
      if (!std::isfinite(value)) return void(out->append("null"));
    }
    char digits[32];
    out->append(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
  } else if constexpr (std::is_convertible_v<const T &, std::string_view>) {
    append_quoted(out, value);
  } else {
    *out += '[';
    bool first = true;
    for (const auto &each : value) {
      if (!first) *out += ',';
      first = false;
      append_value(out, each);
    }
    *out += ']';
  }
}

// Appends a member to an object that is being written step by step. *object must contain the
// opening brace, but not yet the closing brace.
template <class T>
void append_member(std::string *object, std::string_view name, const T &value) {
  if (!object->ends_with('{')) *object += ',';
  append_quoted(object, name);
  *object += ':';
  append_value(object, value);
}

// Writes a JSON value and inserts the necessary commas and colons. A call that is not allowed at
// the current position is ignored, and from then on, whole() returns false. Examples are a value
// without a key in an object, a key in an array, a wrong closing bracket, a second top-level value,
// and more than max_depth levels.
class Writer {
 public:
  static constexpr std::uint32_t max_depth = 128;  // nested objects and arrays

  // Values are appended to *out, which need not be empty.
  explicit Writer(std::string *out) noexcept : out_(*out) {}

  Writer &begin_object() { return begin('{'); }
  Writer &begin_array() { return begin('['); }
  Writer &end_object() { return end('}'); }
  Writer &end_array() { return end(']'); }

  Writer &key(std::string_view name) {
    if (!in_object() || has_key_) return misused();
    if (!first_) out_ += ',';
    append_quoted(&out_, name);
    out_ += ':';
    has_key_ = true;
    return *this;
  }

  // Writes a string, number, bool, nullptr or Raw, or a range of these.
  template <class T>
  Writer &value(const T &v) {
    if (!begin_value()) return misused();
    append_value(&out_, v);
    return *this;
  }

  template <class T>
  Writer &member(std::string_view name, const T &v) {
    return key(name).value(v);
  }

  // Returns true if exactly one complete value has been written and all calls were allowed.
  bool whole() const noexcept { return depth_ == 0 && !first_ && !misused_; }

 private:
  bool in_object() const noexcept {
    return depth_ > 0 && (levels_[(depth_ - 1) / 64] >> ((depth_ - 1) % 64) & 1u) != 0;
  }
  // Writes a comma before a value if one is needed. Returns false if no value is allowed here.
  bool begin_value() {
    if (in_object() ? !has_key_ : depth_ == 0 && !first_) return false;
    if (!first_ && !has_key_) out_ += ',';
    has_key_ = first_ = false;
    return true;
  }
  Writer &begin(char bracket) {
    if (depth_ == max_depth || !begin_value()) return misused();
    const std::uint64_t bit = std::uint64_t{1} << (depth_ % 64);
    std::uint64_t &level = levels_[depth_ / 64];
    level = bracket == '{' ? level | bit : level & ~bit;
    ++depth_;
    first_ = true;
    out_ += bracket;
    return *this;
  }
  Writer &end(char bracket) {
    if (depth_ == 0 || has_key_ || in_object() != (bracket == '}')) return misused();
    --depth_;
    first_ = false;
    out_ += bracket;
    return *this;
  }
  Writer &misused() noexcept {
    misused_ = true;
    return *this;
  }

  std::string &out_;
  std::uint64_t levels_[max_depth / 64] = {};  // one bit per open level; 1: an object
  std::uint32_t depth_ = 0;
  bool first_ = true;     // the innermost level has no elements yet
  bool has_key_ = false;  // a value must follow
  bool misused_ = false;
};

}  // namespace bh::json
