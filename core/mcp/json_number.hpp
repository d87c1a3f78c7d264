// The exact value of a JSON number, for comparison without rounding.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace bulkhead::mcp {

// Two numbers are equal if their exact values are equal. For example, 42, 42.0 and 4.2e1 are equal,
// and so are 0, -0 and 0e9. Numbers that differ in any digit are different, even if both have the
// same value as a double. A number other than 0 is not evaluated if its exponent has more than
// max_exponent_digits digits; such a number equals only an identical token.
//
// The token must outlive this object. Never allocates. Thread-safe.
class Decimal {
 public:
  static constexpr std::size_t max_exponent_digits = 15;

  // `token` is a validated JSON number.
  explicit Decimal(std::string_view token) noexcept;

  friend bool operator==(const Decimal &a, const Decimal &b) noexcept;

  bool evaluated() const noexcept { return evaluated_; }
  // The value is D * 10^exponent(), where D consists of all digits without leading and trailing
  // zeros. Zero has no digits, no sign and the exponent 0. These functions require evaluated().
  bool negative() const noexcept { return negative_; }
  std::size_t digits() const noexcept { return head_.size() + tail_.size(); }
  // the digits are head(), followed by tail()
  std::string_view head() const noexcept { return head_; }
  std::string_view tail() const noexcept { return tail_; }
  std::int64_t exponent() const noexcept { return exponent_; }

  bool is_integer() const noexcept { return evaluated_ && exponent_ >= 0; }
  // Returns the value if it is an integer from -(2^53-1) to 2^53-1. All JSON libraries parse these
  // integers exactly.
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

bool is_json_number(std::string_view text) noexcept;

}  // namespace bulkhead::mcp
