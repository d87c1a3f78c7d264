// JSON as text, for the codecs of the aggregator's protocol: one validating walk, and slices of
// text that has been validated. Nothing is copied, no tree is built, nothing recurses.
// Header only; C++20.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace bh::json {

// Objects and arrays inside each other; deeper text is not valid here.
inline constexpr std::uint32_t max_depth = 128;

namespace detail {

inline bool is_space(char c) noexcept {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}
inline bool is_digit(char c) noexcept {
  return c >= '0' && c <= '9';
}
inline int hex_digit(char c) noexcept {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// The length of the UTF-8 character at p, 0 if it is none (RFC 3629: no surrogates, no overlong
// forms, at most U+10FFFF).
inline std::size_t utf8_length(const char *p, const char *end) noexcept {
  const auto byte = [p](std::size_t i) { return static_cast<unsigned char>(p[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return 1;
  const std::size_t n = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || static_cast<std::size_t>(end - p) < n) return 0;
  unsigned char least = 0x80, most = 0xBF;  // of the second byte
  if (lead == 0xE0) least = 0xA0;
  if (lead == 0xED) most = 0x9F;
  if (lead == 0xF0) least = 0x90;
  if (lead == 0xF4) most = 0x8F;
  if (byte(1) < least || byte(1) > most) return 0;
  for (std::size_t i = 2; i < n; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  return n;
}

// Walks one JSON text and reports what it meets; see walk().
template <class Sink>
class Walker {
 public:
  Walker(std::string_view text, Sink &sink, std::uint32_t depth_bound) noexcept
      : p_(text.data()),
        end_(text.data() + text.size()),
        sink_(sink),
        bound_(depth_bound < max_depth ? depth_bound : max_depth) {}

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
  void space() noexcept {
    while (p_ != end_ && is_space(*p_)) ++p_;
  }
  std::string_view since(const char *at) const noexcept {
    return {at, static_cast<std::size_t>(p_ - at)};
  }

  // One member or element of the innermost container, or its end.
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
    sink_.key(since(at));
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
        sink_.string(since(at));
        return true;
      case 't':
        return word("true");
      case 'f':
        return word("false");
      case 'n':
        return word("null");
      default:
        if (!number()) return false;
        sink_.number(since(at));
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
    if (std::string_view(p_, static_cast<std::size_t>(end_ - p_)).substr(0, wanted.size()) !=
        wanted) {
      return false;
    }
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
        const std::size_t n = utf8_length(p_, end_);
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
      if (hex_digit(*p_++) < 0) return false;
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
  bool first_ = false;  // nothing of the innermost container has been seen yet
  std::array<bool, max_depth> is_object_{};
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

// Behind the string that begins at p. The text is valid.
inline const char *string_end(const char *p) noexcept {
  for (++p; *p != '"'; ++p) {
    if (*p == '\\') ++p;
  }
  return p + 1;
}

// Behind the value that begins at p. The text is valid.
inline const char *value_end(const char *p, const char *end) noexcept {
  std::uint32_t depth = 0;
  do {
    switch (*p) {
      case '"':
        p = string_end(p);
        break;
      case '{':
      case '[':
        ++depth;
        ++p;
        break;
      case '}':
      case ']':
        --depth;
        ++p;
        break;
      default:  // a separator inside of a container, or (a piece of) a number or word
        ++p;
        if (depth > 0) break;
        while (p != end && std::strchr(",]} \t\n\r", *p) == nullptr) ++p;
    }
  } while (depth > 0);
  return p;
}

inline const char *skip_space(const char *p, const char *end) noexcept {
  while (p != end && is_space(*p)) ++p;
  return p;
}

inline void append_utf8(std::string *out, std::uint32_t c) {
  if (c < 0x80) {
    *out += static_cast<char>(c);
  } else if (c < 0x800) {
    *out += static_cast<char>(0xC0 | (c >> 6));
    *out += static_cast<char>(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    *out += static_cast<char>(0xE0 | (c >> 12));
    *out += static_cast<char>(0x80 | ((c >> 6) & 0x3F));
    *out += static_cast<char>(0x80 | (c & 0x3F));
  } else {
    *out += static_cast<char>(0xF0 | (c >> 18));
    *out += static_cast<char>(0x80 | ((c >> 12) & 0x3F));
    *out += static_cast<char>(0x80 | ((c >> 6) & 0x3F));
    *out += static_cast<char>(0x80 | (c & 0x3F));
  }
}

inline std::uint32_t hex4(const char *p) noexcept {
  std::uint32_t value = 0;
  for (int i = 0; i < 4; ++i) value = value * 16 + static_cast<std::uint32_t>(hex_digit(p[i]));
  return value;
}

// Appends what the escape behind the backslash at p means; behind it.
inline const char *append_escape(std::string *out, const char *p, const char *end) {
  static constexpr std::string_view written = "bfnrt", meant = "\b\f\n\r\t";
  if (p[1] != 'u') {
    const std::size_t at = written.find(p[1]);
    *out += at == std::string_view::npos ? p[1] : meant[at];
    return p + 2;
  }
  std::uint32_t c = hex4(p + 2);
  p += 6;
  if (c >= 0xD800 && c < 0xDC00 && end - p >= 6 && p[0] == '\\' && p[1] == 'u') {
    const std::uint32_t low = hex4(p + 2);
    if (low >= 0xDC00 && low < 0xE000) {
      c = 0x10000 + ((c - 0xD800) << 10) + (low - 0xDC00);
      p += 6;
    }
  }
  if (c >= 0xD800 && c < 0xE000) c = 0xFFFD;  // half a pair has no UTF-8
  append_utf8(out, c);
  return p;
}

}  // namespace detail

// True if `text` is one JSON value (UTF-8, depth within the bound). The sink is told, in order, of
// begin_object, end_object, begin_array, end_array, key(token), string(token), number(token) and
// word("true"|"false"|"null"); tokens are slices of text, strings with their quotes. When this
// returns false the sink has seen a part of it.
template <class Sink>
bool walk(std::string_view text, Sink &sink, std::uint32_t depth_bound = max_depth) {
  return detail::Walker<Sink>(text, sink, depth_bound).run();
}

inline bool valid(std::string_view text, std::uint32_t depth_bound = max_depth) {
  detail::NoSink sink;
  return walk(text, sink, depth_bound);
}

// Everything below wants text that valid() has accepted.

inline std::string_view trimmed(std::string_view text) noexcept {
  while (!text.empty() && detail::is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && detail::is_space(text.back())) text.remove_suffix(1);
  return text;
}

// The text of a string token; half a surrogate pair becomes U+FFFD.
inline std::string unquote(std::string_view token) {
  const char *p = token.data() + 1;
  const char *const end = token.data() + token.size() - 1;
  std::string out;
  out.reserve(token.size());
  while (p != end) {
    if (*p == '\\') {
      p = detail::append_escape(&out, p, end);
    } else {
      out += *p++;
    }
  }
  return out;
}

inline bool is_text(std::string_view token, std::string_view text) {
  if (token.size() < 2 || token.front() != '"') return false;
  if (token.find('\\') == std::string_view::npos) {
    return token.substr(1, token.size() - 2) == text;
  }
  return unquote(token) == text;
}

// Appends a string token. `text` must be UTF-8.
inline void append_quoted(std::string *out, std::string_view text) {
  static constexpr char hex[] = "0123456789abcdef";
  *out += '"';
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      *out += '\\';
      *out += c;
    } else if (byte >= 0x20) {
      *out += c;
    } else {
      out->append("\\u00").append(1, hex[byte >> 4]).append(1, hex[byte & 15]);
    }
  }
  *out += '"';
}

// Calls f(key_token, value) for each member, in order, until it returns false. False: `object` is
// no object.
template <class F>
bool for_each_member(std::string_view object, F &&f) {
  const char *p = detail::skip_space(object.data(), object.data() + object.size());
  const char *const end = object.data() + object.size();
  if (p == end || *p != '{') return false;
  p = detail::skip_space(p + 1, end);
  while (*p != '}') {
    const char *const key = p;
    p = detail::string_end(p);
    const std::string_view key_token(key, static_cast<std::size_t>(p - key));
    p = detail::skip_space(detail::skip_space(p, end) + 1, end);  // the colon
    const char *const value = p;
    p = detail::value_end(p, end);
    if (!f(key_token, std::string_view(value, static_cast<std::size_t>(p - value)))) return true;
    p = detail::skip_space(p, end);
    if (*p == ',') p = detail::skip_space(p + 1, end);
  }
  return true;
}

// The same for the elements of an array.
template <class F>
bool for_each_element(std::string_view array, F &&f) {
  const char *p = detail::skip_space(array.data(), array.data() + array.size());
  const char *const end = array.data() + array.size();
  if (p == end || *p != '[') return false;
  p = detail::skip_space(p + 1, end);
  while (*p != ']') {
    const char *const value = p;
    p = detail::value_end(p, end);
    if (!f(std::string_view(value, static_cast<std::size_t>(p - value)))) return true;
    p = detail::skip_space(p, end);
    if (*p == ',') p = detail::skip_space(p + 1, end);
  }
  return true;
}

// The value of the first member of that name; empty: there is none.
inline std::string_view member(std::string_view object, std::string_view name) {
  std::string_view found;
  for_each_member(object, [&](std::string_view key, std::string_view value) {
    if (!is_text(key, name)) return true;
    found = value;
    return false;
  });
  return found;
}

}  // namespace bh::json
