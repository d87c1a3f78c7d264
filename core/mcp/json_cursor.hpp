// Traverses and validates JSON text (RFC 8259) without allocation or recursion.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

#include "mcp/json_string.hpp"

namespace bulkhead::mcp::json {

// The maximum depth that callers can allow. One bit per level is stored on the stack.
inline constexpr std::uint32_t deepest = 1024;

inline constexpr char too_deep[] = "nested too deeply";  // callers compare this pointer

// Each *_end function receives the start of an element and returns its end. For invalid text, it
// returns nullptr and sets *fault. It reads only [p, end).

inline const char *fail_at(Fault *fault, const char *what, const char *at,
                           const char *end) noexcept {
  *fault = {at == end ? "unexpected end of the text" : what, at};
  return nullptr;
}

inline const char *space_end(const char *p, const char *end) noexcept {
  while (p < end && static_cast<unsigned char>(*p) <= 0x20 &&
         (*p == ' ' || *p == '\n' || *p == '\t' || *p == '\r')) {
    ++p;
  }
  return p;
}

inline bool is_digit(char c) noexcept {
  return c >= '0' && c <= '9';
}

inline const char *digits_end(const char *p, const char *end, Fault *fault) noexcept {
  if (p == end || !is_digit(*p)) return fail_at(fault, "expected a digit", p, end);
  do {
    ++p;
  } while (p < end && is_digit(*p));
  return p;
}

inline const char *number_end(const char *p, const char *end, Fault *fault) noexcept {
  if (*p == '-') ++p;
  if (p < end && *p == '0') {
    ++p;  // another digit is rejected by the caller, because it cannot follow a value
  } else {
    p = digits_end(p, end, fault);
    if (p == nullptr) return nullptr;
  }
  if (p < end && *p == '.') {
    p = digits_end(p + 1, end, fault);
    if (p == nullptr) return nullptr;
  }
  if (p < end && (*p == 'e' || *p == 'E')) {
    ++p;
    if (p < end && (*p == '+' || *p == '-')) ++p;
    return digits_end(p, end, fault);
  }
  return p;
}

// Compares the four bytes at `p` with `word`. The caller must ensure that at least four bytes can
// be read.
inline bool is_word(const char *p, const char (&word)[5]) noexcept {
  return std::memcmp(p, word, 4) == 0;
}

// Parses a string, a number, or one of the literals true, false and null.
inline const char *scalar_end(const char *p, const char *end, Fault *fault) noexcept {
  if (p == end) return fail_at(fault, "", p, end);
  if (*p == '"') return string_end(p + 1, end, fault);
  if (*p == '-' || is_digit(*p)) return number_end(p, end, fault);
  if (end - p >= 4 && (is_word(p, "true") || is_word(p, "null"))) return p + 4;
  if (end - p >= 5 && is_word(p, "fals") && p[4] == 'e') return p + 5;
  return fail_at(fault, "invalid JSON value", p, end);
}

// Parses a member name, the colon after it, and the white space before and after the colon. Sets
// *inside to the name without quotes.
inline const char *key_end(const char *p, const char *end, std::string_view *inside,
                           Fault *fault) noexcept {
  if (p == end || *p != '"') return fail_at(fault, "expected a member name", p, end);
  const char *start = p + 1;
  p = string_end(start, end, fault);
  if (p == nullptr) return nullptr;
  *inside = {start, static_cast<std::size_t>(p - 1 - start)};
  p = space_end(p, end);
  if (p == end || *p != ':') return fail_at(fault, "expected a colon", p, end);
  return space_end(p + 1, end);
}

// Parses the white space after a value and then a comma, with the white space that follows, or the
// closing bracket. Sets *more to true if there is a comma.
inline const char *separator_end(const char *p, const char *end, char close, bool *more,
                                 Fault *fault) noexcept {
  p = space_end(p, end);
  if (p < end && *p == ',') {
    *more = true;
    return space_end(p + 1, end);
  }
  *more = false;
  if (p < end && *p == close) return p + 1;
  return fail_at(fault, "expected a comma or a closing bracket", p, end);
}

// Stores whether each open level is an object or an array.
class LevelBits {
 public:
  void set(std::uint32_t level, bool object) noexcept {
    const std::uint64_t bit = std::uint64_t{1} << (level % 64);
    std::uint64_t &word = words_[level / 64];
    word = object ? word | bit : word & ~bit;
  }
  bool is_object(std::uint32_t level) const noexcept {
    return (words_[level / 64] >> (level % 64) & 1) != 0;
  }

 private:
  std::uint64_t words_[deepest / 64];  // a level is written before it is read
};

// Parses any value. `depth` is the maximum number of nested levels (0: only a scalar).
const char *value_end(const char *p, const char *end, std::uint32_t depth, Fault *fault) noexcept;

// A position in JSON text. value(), key() and separator() parse one element and advance the
// position. If one of them returns false, fault() returns the reason, and parsing cannot continue.
class Cursor {
 public:
  explicit Cursor(std::string_view text) noexcept
      : begin_(text.data()), at_(text.data()), end_(text.data() + text.size()) {}

  const char *begin() const noexcept { return begin_; }
  const char *at() const noexcept { return at_; }
  const char *end() const noexcept { return end_; }
  const Fault &fault() const noexcept { return fault_; }
  bool at_end() const noexcept { return at_ == end_; }

  // Returns the current byte, or 0 at the end of the text. (NUL is never valid in JSON.)
  char peek() const noexcept { return at_ < end_ ? *at_ : '\0'; }

  bool consume(char c) noexcept {
    if (at_ == end_ || *at_ != c) return false;
    ++at_;
    return true;
  }
  void skip_space() noexcept { at_ = space_end(at_, end_); }
  bool value(std::uint32_t depth) noexcept { return move(value_end(at_, end_, depth, &fault_)); }
  bool key(std::string_view *inside) noexcept { return move(key_end(at_, end_, inside, &fault_)); }
  bool separator(char close, bool *more) noexcept {
    return move(separator_end(at_, end_, close, more, &fault_));
  }
  bool fail(const char *what) noexcept {
    fault_ = {what, at_};
    return false;
  }

 private:
  bool move(const char *to) noexcept {
    if (to != nullptr) at_ = to;
    return to != nullptr;
  }

  const char *begin_;
  const char *at_;
  const char *end_;
  Fault fault_;
};

}  // namespace bulkhead::mcp::json
