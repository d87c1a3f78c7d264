// Reads JSON (RFC 8259): validates a text and finds members in it. Values are slices of the text,
// and no tree is built. Header only; C++20.
//
//   if (!bh::json::valid(text)) return ...;
//   std::string path = bh::json::member_text(text, "path");
//   std::uint32_t most = 0;
//   if (!bh::json::read_integer(bh::json::member(text, "most"), &most)) return ...;
//
// Only walk() and valid() validate the text. The other functions accept any text, but if it is not
// valid JSON, their results are unspecified parts of it. No function recurses or reads outside the
// text. Memory is allocated only for unescaping strings.
//
// A tree would require a copy of the text and an allocation for each container, although plugins
// look up only one to five members of a message. A plugin that needs the complete value should use
// RapidJSON.
//
// Thread-safe.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>

#include "text.hpp"

namespace bh::json {

// Maximum nesting depth of objects and arrays. A text that is nested more deeply is invalid.
inline constexpr std::uint32_t max_depth = 128;

namespace detail {

constexpr bool is_space(char c) noexcept {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

inline const char *skip_space(const char *p, const char *end) noexcept {
  while (p != end && is_space(*p)) ++p;
  return p;
}

constexpr std::string_view between(const char *begin, const char *end) noexcept {
  return {begin, static_cast<std::size_t>(end - begin)};
}

// Implements walk().
template <class Sink>
class Walker {
 public:
  Walker(std::string_view text, Sink &sink, std::uint32_t depth_bound) noexcept
      : p_(text.data()),
        end_(text.data() + text.size()),
        sink_(sink),
        bound_(std::min(depth_bound, max_depth)) {}

  bool run() {
    space();
    if (!value()) return false;
    while (depth_ > 0) {
      if (!step()) return false;
    }
    space();
    return p_ == end_;
  }

 private:
  void space() noexcept { p_ = skip_space(p_, end_); }

  // Reads the next member or element of the innermost container, or the end of the container.
  bool step() {
    space();
    if (p_ == end_) return false;
    const bool object = is_object_[depth_ - 1];
    if (*p_ == (object ? '}' : ']')) {
      ++p_;
      --depth_;
      first_ = false;
      object ? sink_.end_object() : sink_.end_array();
      return true;
    }
    if (!first_) {
      if (*p_++ != ',') return false;
      space();
    }
    first_ = false;
    return (!object || key()) && value();
  }

  bool key() {
    const char *at = p_;
    if (!string()) return false;
    sink_.key(between(at, p_));
    space();
    if (p_ == end_ || *p_ != ':') return false;
    ++p_;
    space();
    return true;
  }

  bool value() {
    if (p_ == end_) return false;
    const char *at = p_;
    switch (*p_) {
      case '{':
      case '[':
        return open(*p_ == '{');
      case '"':
        if (!string()) return false;
        sink_.string(between(at, p_));
        return true;
      case 't':
        return word("true");
      case 'f':
        return word("false");
      case 'n':
        return word("null");
      default:
        if (!number()) return false;
        sink_.number(between(at, p_));
        return true;
    }
  }

  bool open(bool object) {
    if (depth_ == bound_) return false;
    ++p_;
    is_object_[depth_++] = object;
    first_ = true;
    object ? sink_.begin_object() : sink_.begin_array();
    return true;
  }

  bool word(std::string_view wanted) {
    if (!between(p_, end_).starts_with(wanted)) return false;
    p_ += wanted.size();
    sink_.word(wanted);
    return true;
  }

  bool string() noexcept {
    if (p_ == end_ || *p_ != '"') return false;
    ++p_;
    while (p_ != end_) {
      const auto c = static_cast<unsigned char>(*p_);
      if (c == '"') {
        ++p_;
        return true;
      }
      if (c < 0x20) return false;
      if (c == '\\') {
        if (!escape()) return false;
      } else if (c < 0x80) {
        ++p_;
      } else {
        const std::size_t n = utf8_length(between(p_, end_));
        if (n == 0) return false;
        p_ += n;
      }
    }
    return false;
  }

  bool escape() noexcept {
    if (++p_ == end_) return false;
    const char c = *p_++;
    if (c != 'u') return std::string_view("\"\\/bfnrt").find(c) != std::string_view::npos;
    if (end_ - p_ < 4) return false;
    for (int i = 0; i < 4; ++i) {
      if (hex_value(*p_++) < 0) return false;
    }
    return true;
  }

  bool digits() noexcept {
    if (p_ == end_ || !is_digit(*p_)) return false;
    while (p_ != end_ && is_digit(*p_)) ++p_;
    return true;
  }

  bool number() noexcept {
    if (*p_ == '-') ++p_;
    if (p_ != end_ && *p_ == '0') {
      ++p_;
    } else if (!digits()) {
      return false;
    }
    if (p_ != end_ && *p_ == '.') {
      ++p_;
      if (!digits()) return false;
    }
    if (p_ != end_ && (*p_ == 'e' || *p_ == 'E')) {
      ++p_;
      if (p_ != end_ && (*p_ == '+' || *p_ == '-')) ++p_;
      if (!digits()) return false;
    }
    return true;
  }

  const char *p_;
  const char *const end_;
  Sink &sink_;
  const std::uint32_t bound_;
  std::uint32_t depth_ = 0;
  bool first_ = false;  // the innermost container has no elements yet
  bool is_object_[max_depth] = {};
};

struct NoSink {
  void begin_object() noexcept {}
  void end_object() noexcept {}
  void begin_array() noexcept {}
  void end_array() noexcept {}
  void key(std::string_view) noexcept {}
  void string(std::string_view) noexcept {}
  void number(std::string_view) noexcept {}
  void word(std::string_view) noexcept {}
};

// Returns the position after the string that begins at p, or nullptr if it is not closed.
inline const char *string_end(const char *p, const char *end) noexcept {
  for (++p;;) {
    const std::string_view rest = between(p, end);
    const std::size_t quote = rest.find('"');
    if (quote == rest.npos) return nullptr;
    std::size_t slash = quote;
    while (slash > 0 && rest[slash - 1] == '\\') --slash;
    p += quote + 1;
    if ((quote - slash) % 2 == 0) return p;
  }
}

// Returns true for characters that cannot be part of a number, true, false or null.
constexpr bool ends_scalar(char c) noexcept {
  switch (c) {
    case ',':
    case ':':
    case '"':
    case '[':
    case ']':
    case '{':
    case '}':
      return true;
    default:
      return is_space(c);
  }
}

// Returns the position after the value that begins at p, or nullptr if there is no value or the
// value is incomplete. The end of a container is found by counting the brackets outside strings.
inline const char *value_end(const char *p, const char *end) noexcept {
  if (p == end) return nullptr;
  if (*p == '"') return string_end(p, end);
  if (*p != '{' && *p != '[') {
    const char *at = p;
    while (at != end && !ends_scalar(*at)) ++at;
    return at == p ? nullptr : at;
  }
  std::size_t depth = 0;
  while (p != nullptr && p != end) {
    const char c = *p;
    if (c == '"') {
      p = string_end(p, end);
      continue;
    }
    ++p;
    if (c == '{' || c == '[') ++depth;
    if ((c == '}' || c == ']') && --depth == 0) return p;
  }
  return nullptr;
}

// Skips white space and a comma, and returns the position of the next element. Returns nullptr if
// there is no comma; *well is then true if the container is closed correctly.
inline const char *next_item(const char *p, const char *end, char close, bool *well) noexcept {
  p = skip_space(p, end);
  *well = p != end && *p == close;
  if (p == end || *p != ',') return nullptr;
  return skip_space(p + 1, end);
}

inline const char *first_item(std::string_view text, char open, char close, bool *well) noexcept {
  const char *const end = text.data() + text.size();
  const char *p = skip_space(text.data(), end);
  *well = false;
  if (p == end || *p != open) return nullptr;
  p = skip_space(p + 1, end);
  *well = p != end && *p == close;
  return *well ? nullptr : p;
}

inline char32_t hex4(std::string_view digits) noexcept {
  char32_t value = 0;
  for (const char c : digits.substr(0, 4)) value = value * 16 + static_cast<unsigned>(hex_value(c));
  return value;
}

// Appends the character that the escape sequence at the start of `text` represents. Returns the
// size of the escape sequence, including its backslash.
inline std::size_t append_meaning(std::string *out, std::string_view text) {
  constexpr std::string_view written = "bfnrt", meant = "\b\f\n\r\t";
  if (text.size() < 2) return text.size();
  if (text[1] != 'u') {
    const std::size_t at = written.find(text[1]);
    *out += at == written.npos ? text[1] : meant[at];
    return 2;
  }
  if (text.size() < 6) return text.size();
  char32_t c = hex4(text.substr(2));
  std::size_t size = 6;
  if (c >= 0xD800 && c < 0xDC00 && text.size() >= 12 && text[6] == '\\' && text[7] == 'u') {
    const char32_t low = hex4(text.substr(8));
    if (low >= 0xDC00 && low < 0xE000) {
      c = 0x10000 + ((c - 0xD800) << 10) + (low - 0xDC00);
      size = 12;
    }
  }
  if (c >= 0xD800 && c < 0xE000) c = replacement_character;  // a lone surrogate
  append_utf8(out, std::min<char32_t>(c, 0x10FFFF));
  return size;
}

}  // namespace detail

// Returns true if `text` is valid UTF-8 and a JSON value that is nested no deeper than depth_bound
// and max_depth. Calls these functions of the sink, in the order of the text: begin_object,
// end_object, begin_array, end_array, key(token), string(token), number(token) and
// word("true"|"false"|"null"). Tokens are slices of the text; strings include their quotes. If the
// text is invalid, the sink has received the tokens before the error.
template <class Sink>
bool walk(std::string_view text, Sink &sink, std::uint32_t depth_bound = max_depth) {
  return detail::Walker<Sink>(text, sink, depth_bound).run();
}

inline bool valid(std::string_view text, std::uint32_t depth_bound = max_depth) {
  detail::NoSink sink;
  return walk(text, sink, depth_bound);
}

inline std::string_view trimmed(std::string_view text) noexcept {
  while (!text.empty() && detail::is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && detail::is_space(text.back())) text.remove_suffix(1);
  return text;
}

// ---- containers -------------------------------------------------------------------------------

// Calls f(key_token, value) for each member in order, until f returns false. Returns false if
// `object` is not an object or is incomplete, unless f stopped before the error. If f takes only
// the key_token, it is called before the value is read, so it can stop before a long value.
template <class F>
bool for_each_member(std::string_view object, F &&f) {
  constexpr bool keys_only = std::is_invocable_v<F &, std::string_view>;
  const char *const end = object.data() + object.size();
  bool well = false;
  const char *p = detail::first_item(object, '{', '}', &well);
  while (p != nullptr) {
    if (p == end || *p != '"') return false;
    const char *const key = p;
    p = detail::string_end(p, end);
    if (p == nullptr) return false;
    const std::string_view key_token = detail::between(key, p);
    p = detail::skip_space(p, end);
    if (p == end || *p != ':') return false;
    const char *const value = detail::skip_space(p + 1, end);
    if constexpr (keys_only) {
      if (!f(key_token)) return true;
    }
    p = detail::value_end(value, end);
    if (p == nullptr) return false;
    if constexpr (!keys_only) {
      if (!f(key_token, detail::between(value, p))) return true;
    }
    p = detail::next_item(p, end, '}', &well);
  }
  return well;
}

// Calls f(value) for each element of an array, until f returns false. Returns false if `array` is
// not an array or is incomplete, unless f stopped before the error.
template <class F>
bool for_each_element(std::string_view array, F &&f) {
  const char *const end = array.data() + array.size();
  bool well = false;
  const char *p = detail::first_item(array, '[', ']', &well);
  while (p != nullptr) {
    const char *const value = p;
    p = detail::value_end(value, end);
    if (p == nullptr) return false;
    if (!f(detail::between(value, p))) return true;
    p = detail::next_item(p, end, ']', &well);
  }
  return well;
}

// ---- values -----------------------------------------------------------------------------------

inline bool is_string(std::string_view token) noexcept {
  return token.size() >= 2 && token.front() == '"' && token.back() == '"';
}

// Returns the content of a string token. A lone surrogate becomes U+FFFD. Returns an empty string
// if the token is not a string.
inline std::string unquote(std::string_view token) {
  std::string out;
  if (!is_string(token)) return out;
  token = token.substr(1, token.size() - 2);
  out.reserve(token.size());
  while (!token.empty()) {
    const std::size_t plain = std::min(token.find('\\'), token.size());
    out.append(token.substr(0, plain));
    token.remove_prefix(plain);
    if (!token.empty()) token.remove_prefix(detail::append_meaning(&out, token));
  }
  return out;
}

// Returns true if the token is a string with this content.
inline bool is_text(std::string_view token, std::string_view text) {
  if (!is_string(token)) return false;
  if (token.find('\\') == std::string_view::npos) {
    return token.substr(1, token.size() - 2) == text;
  }
  return unquote(token) == text;
}

// Parses an integer. Returns false if the token is not a number, has a fraction or an exponent, or
// is out of range.
template <class Integer>
bool read_integer(std::string_view token, Integer *out) noexcept {
  const char *const end = token.data() + token.size();
  const auto [stop, error] = std::from_chars(token.data(), end, *out);
  return error == std::errc() && stop == end;
}

// Returns the value of the first member with this name, or an empty view if there is none.
inline std::string_view member(std::string_view object, std::string_view name) {
  std::string_view found;
  for_each_member(object, [&](std::string_view key, std::string_view value) {
    if (!is_text(key, name)) return true;
    found = value;
    return false;
  });
  return found;
}

// Returns the content of the first member with this name. Returns an empty string if the member is
// missing or not a string.
inline std::string member_text(std::string_view object, std::string_view name) {
  return unquote(member(object, name));
}

}  // namespace bh::json
