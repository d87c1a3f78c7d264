#include "mcp/json_number.hpp"

#include <algorithm>
#include <charconv>

#include "mcp/json_cursor.hpp"

namespace bulkhead::mcp {
namespace {

constexpr std::int64_t max_safe_integer = (std::int64_t{1} << 53) - 1;

// Removes leading zeros and returns their number.
std::size_t cut_leading_zeros(std::string_view *digits) noexcept {
  const std::size_t zeros = std::min(digits->find_first_not_of('0'), digits->size());
  digits->remove_prefix(zeros);
  return zeros;
}

std::size_t cut_trailing_zeros(std::string_view *digits) noexcept {
  const std::size_t last = digits->find_last_not_of('0');
  const std::size_t kept = last == std::string_view::npos ? 0 : last + 1;
  const std::size_t zeros = digits->size() - kept;
  digits->remove_suffix(zeros);
  return zeros;
}

// Parses the text after 'e'. Returns false if it has too many digits.
bool read_exponent(std::string_view text, std::int64_t *out) noexcept {
  if (text.starts_with('+')) text.remove_prefix(1);
  const bool negative = text.starts_with('-');
  if (negative) text.remove_prefix(1);
  cut_leading_zeros(&text);
  if (text.size() > Decimal::max_exponent_digits) return false;
  std::from_chars(text.data(), text.data() + text.size(), *out);
  if (negative) *out = -*out;
  return true;
}

}  // namespace

Decimal::Decimal(std::string_view token) noexcept : token_(token) {
  std::string_view rest = token;
  negative_ = rest.starts_with('-');
  if (negative_) rest.remove_prefix(1);
  const std::size_t e = std::min(rest.find_first_of("eE"), rest.size());
  if (e < rest.size()) evaluated_ = read_exponent(rest.substr(e + 1), &exponent_);
  rest = rest.substr(0, e);
  const std::size_t point = std::min(rest.find('.'), rest.size());
  head_ = rest.substr(0, point);
  if (point < rest.size()) tail_ = rest.substr(point + 1);
  exponent_ -= static_cast<std::int64_t>(tail_.size());
  cut_zeros();
}

void Decimal::cut_zeros() noexcept {
  cut_leading_zeros(&head_);
  if (head_.empty()) cut_leading_zeros(&tail_);
  std::size_t zeros = cut_trailing_zeros(&tail_);
  if (tail_.empty()) zeros += cut_trailing_zeros(&head_);
  exponent_ += static_cast<std::int64_t>(zeros);
  if (digits() != 0) return;
  negative_ = false;
  exponent_ = 0;
  evaluated_ = true;  // zero, regardless of the exponent
}

bool operator==(const Decimal &a, const Decimal &b) noexcept {
  if (!a.evaluated_ || !b.evaluated_) return a.token_ == b.token_;
  if (a.negative_ != b.negative_ || a.exponent_ != b.exponent_ || a.digits() != b.digits()) {
    return false;
  }
  for (std::size_t i = 0; i < a.digits(); ++i) {
    if (a.digit(i) != b.digit(i)) return false;
  }
  return true;
}

std::optional<std::int64_t> Decimal::safe_integer() const noexcept {
  constexpr std::int64_t most_digits = 16;  // the number of digits of max_safe_integer
  const auto count = static_cast<std::int64_t>(digits());
  if (!is_integer() || exponent_ > most_digits || count + exponent_ > most_digits) {
    return std::nullopt;
  }
  std::int64_t value = 0;
  for (std::size_t i = 0; i < digits(); ++i) value = value * 10 + (digit(i) - '0');
  for (std::int64_t i = 0; i < exponent_; ++i) value *= 10;
  if (value > max_safe_integer) return std::nullopt;
  return negative_ ? -value : value;
}

bool is_json_number(std::string_view text) noexcept {
  if (text.empty() || (text[0] != '-' && !json::is_digit(text[0]))) return false;
  json::Fault fault;
  const char *const end = text.data() + text.size();
  return json::number_end(text.data(), end, &fault) == end;
}

}  // namespace bulkhead::mcp
