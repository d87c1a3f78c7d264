// The exact value of a JSON number, for comparison without rounding.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace bulkhead::mcp {

// Two spellings of one value are equal: 42, 42.0, 4.2e1; 0, -0, 0e9. Numbers that differ in any
// digit are different, even if a double has the same value for both. An exponent of more than
// max_exponent_digits digits is not evaluated: such numbers are equal only if their spelling is.
//
// Borrows the token. Never allocates. Thread-safe.
class Decimal {
 public:
  static constexpr std::size_t max_exponent_digits = 15;

  // The token is a validated JSON number.
  explicit Decimal(std::string_view token) noexcept;

  friend bool operator==(const Decimal &a, const Decimal &b) noexcept;

  bool evaluated() const noexcept { return evaluated_; }
  // The value is the digits without leading and trailing zeros, times 10^exponent(). Zero has no
  // digits, no sign and the exponent 0. Valid if evaluated().
  bool negative() const noexcept { return negative_; }
  std::size_t digits() const noexcept { return head_.size() + tail_.size(); }
  std::string_view head() const noexcept { return head_; }  // the digits are head(), then tail()
  std::string_view tail() const noexcept { return tail_; }
  std::int64_t exponent() const noexcept { return exponent_; }

  bool is_integer() const noexcept { return evaluated_ && exponent_ >= 0; }
  // The value if it is an integer from -(2^53-1) to 2^53-1, which every JSON library reads exactly.
  std::optional<std::int64_t> safe_integer() const noexcept;

 private:
  char digit(std::size_t i) const noexcept {
    return i < head_.size() ? head_[i] : tail_[i - head_.size()];
  }
  void cut_zeros() noexcept;

  std::string_view token_, head_, tail_;
  std::int64_t exponent_ = 0;
  bool negative_ = false, evaluated_ = true;
};

// Returns true if the text is a JSON number.
bool is_json_number(std::string_view text) noexcept;

}  // namespace bulkhead::mcp
