#include "time.hpp"

#include <chrono>
#include <cstdio>

namespace bulkhead::cel {
namespace {

constexpr std::int64_t kBillion = 1'000'000'000;
constexpr std::int64_t kFirstSecond = -62135596800;  // 0001-01-01T00:00:00Z
constexpr std::int64_t kLastSecond = 253402300799;   // 9999-12-31T23:59:59Z
constexpr std::int64_t kLongest = 315'576'000'000;
constexpr std::int64_t kDay = 86400;

// Consumes exactly `digits` decimal digits.
bool consume_digits(std::string_view *text, std::size_t digits, int *out) {
  if (text->size() < digits) return false;
  *out = 0;
  for (std::size_t i = 0; i < digits; ++i) {
    const char c = (*text)[i];
    if (c < '0' || c > '9') return false;
    *out = *out * 10 + (c - '0');
  }
  text->remove_prefix(digits);
  return true;
}

bool consume(std::string_view *text, char c) {
  if (!text->starts_with(c)) return false;
  text->remove_prefix(1);
  return true;
}

// Consumes the digits after a decimal point and converts them to nanoseconds. Digits after the
// ninth are ignored.
bool consume_fraction(std::string_view *text, std::int32_t *nanos) {
  std::int32_t unit = kBillion / 10;
  std::size_t digits = 0;
  for (; digits < text->size() && (*text)[digits] >= '0' && (*text)[digits] <= '9'; ++digits) {
    *nanos += ((*text)[digits] - '0') * unit;
    unit /= 10;
  }
  text->remove_prefix(digits);
  return digits > 0;
}

std::string with_fraction(std::string text, std::int64_t nanos) {
  if (nanos == 0) return text;
  char digits[16];
  std::snprintf(digits, sizeof(digits), ".%09d", static_cast<int>(nanos));
  text += digits;
  text.erase(text.find_last_not_of('0') + 1);
  return text;
}

}  // namespace

bool in_timestamp_range(Time time) {
  return time.seconds >= kFirstSecond && time.seconds <= kLastSecond;
}

bool in_duration_range(Time time) {
  return time >= Time{-kLongest, 0} && time <= Time{kLongest, 0};
}

std::optional<Time> sum(Time a, Time b) {
  Time result{0, a.nanos + b.nanos};
  const std::int64_t carry = result.nanos >= kBillion ? 1 : 0;
  result.nanos -= static_cast<std::int32_t>(carry * kBillion);
  if (__builtin_add_overflow(a.seconds, b.seconds, &result.seconds)) return std::nullopt;
  if (__builtin_add_overflow(result.seconds, carry, &result.seconds)) return std::nullopt;
  return result;
}

std::optional<Time> difference(Time a, Time b) {
  Time result{0, a.nanos - b.nanos};
  const std::int64_t borrow = result.nanos < 0 ? 1 : 0;
  result.nanos += static_cast<std::int32_t>(borrow * kBillion);
  if (__builtin_sub_overflow(a.seconds, b.seconds, &result.seconds)) return std::nullopt;
  if (__builtin_sub_overflow(result.seconds, borrow, &result.seconds)) return std::nullopt;
  return result;
}

Calendar calendar(Time time) {
  using namespace std::chrono;
  const std::int64_t day_number = (time.seconds - (time.seconds % kDay + kDay) % kDay) / kDay;
  const auto second_of_day = static_cast<int>(time.seconds - day_number * kDay);
  const sys_days day{days{day_number}};
  const year_month_day date{day};
  const sys_days new_year{date.year() / January / 1};
  return {.year = static_cast<int>(date.year()),
          .month = static_cast<int>(static_cast<unsigned>(date.month())) - 1,
          .day = static_cast<int>(static_cast<unsigned>(date.day())),
          .day_of_year = static_cast<int>((day - new_year).count()),
          .day_of_week = static_cast<int>(weekday{day}.c_encoding()),
          .hour = second_of_day / 3600,
          .minute = second_of_day / 60 % 60,
          .second = second_of_day % 60,
          .millisecond = time.nanos / 1'000'000};
}

std::optional<int> parse_zone(std::string_view text) {
  if (text == "UTC" || text == "Z" || text == "z") return 0;
  const bool west = text.starts_with('-');
  if (west || text.starts_with('+')) text.remove_prefix(1);
  int hours = 0;
  int minutes = 0;
  if (!consume_digits(&text, 2, &hours) || !consume(&text, ':') ||
      !consume_digits(&text, 2, &minutes) || !text.empty() || hours > 23 || minutes > 59) {
    return std::nullopt;
  }
  const int seconds = hours * 3600 + minutes * 60;
  return west ? -seconds : seconds;
}

std::optional<Time> parse_timestamp(std::string_view text) {
  int year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0;
  if (!consume_digits(&text, 4, &year) || !consume(&text, '-') ||
      !consume_digits(&text, 2, &month) || !consume(&text, '-') ||
      !consume_digits(&text, 2, &day) || (!consume(&text, 'T') && !consume(&text, 't')) ||
      !consume_digits(&text, 2, &hour) || !consume(&text, ':') ||
      !consume_digits(&text, 2, &minute) || !consume(&text, ':') ||
      !consume_digits(&text, 2, &second)) {
    return std::nullopt;
  }
  Time time;
  if (consume(&text, '.') && !consume_fraction(&text, &time.nanos)) return std::nullopt;
  const bool zoned = text == "Z" || text == "z" || text.starts_with('+') || text.starts_with('-');
  const auto offset = zoned ? parse_zone(text) : std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year{year},
                                         std::chrono::month{static_cast<unsigned>(month)},
                                         std::chrono::day{static_cast<unsigned>(day)}};
  if (!offset || !date.ok() || hour > 23 || minute > 59 || second > 59) return std::nullopt;
  time.seconds = std::chrono::sys_days{date}.time_since_epoch().count() * kDay + hour * 3600 +
                 minute * 60 + second - *offset;
  if (!in_timestamp_range(time)) return std::nullopt;
  return time;
}

std::string format_timestamp(Time time) {
  const Calendar c = calendar(time);
  char text[48];
  std::snprintf(text, sizeof(text), "%04d-%02d-%02dT%02d:%02d:%02d", static_cast<int>(c.year),
                c.month + 1, c.day, c.hour, c.minute, c.second);
  return with_fraction(text, time.nanos) + "Z";
}

namespace {

struct Unit {
  std::string_view name;
  std::int64_t nanos;
};

std::int64_t consume_unit(std::string_view *text) {
  static constexpr Unit units[] = {{"h", 3600 * kBillion}, {"ms", 1'000'000}, {"m", 60 * kBillion},
                                   {"us", 1000},           {"\u00b5s", 1000}, {"ns", 1},
                                   {"s", kBillion}};
  for (const Unit &unit : units) {
    if (!text->starts_with(unit.name)) continue;
    text->remove_prefix(unit.name.size());
    return unit.nanos;
  }
  return 0;
}

// Consumes a component such as "12.5h" and adds it to *total in nanoseconds.
bool consume_component(std::string_view *text, __int128 *total) {
  std::int64_t whole = 0;
  std::size_t digits = 0;
  for (; digits < text->size() && (*text)[digits] >= '0' && (*text)[digits] <= '9'; ++digits) {
    if (__builtin_mul_overflow(whole, std::int64_t{10}, &whole)) return false;
    if (__builtin_add_overflow(whole, std::int64_t{(*text)[digits] - '0'}, &whole)) return false;
  }
  text->remove_prefix(digits);
  std::int32_t fraction = 0;
  if (consume(text, '.')) {
    if (!consume_fraction(text, &fraction) && digits == 0) return false;
  } else if (digits == 0) {
    return false;
  }
  const std::int64_t unit = consume_unit(text);
  *total += static_cast<__int128>(whole) * unit + static_cast<__int128>(fraction) * unit / kBillion;
  return unit != 0 && *total / kBillion <= kLongest;
}

}  // namespace

std::optional<Time> parse_duration(std::string_view text) {
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  if (text == "0") return Time{};
  __int128 total = 0;
  do {
    if (!consume_component(&text, &total)) return std::nullopt;
  } while (!text.empty());
  if (negative) total = -total;
  Time time{static_cast<std::int64_t>(total / kBillion),
            static_cast<std::int32_t>(total % kBillion)};
  if (time.nanos < 0) {
    time.nanos += kBillion;
    --time.seconds;
  }
  if (!in_duration_range(time)) return std::nullopt;
  return time;
}

std::string format_duration(Time time) {
  const bool negative = time.seconds < 0;
  if (negative) time = *difference(Time{}, time);  // cannot overflow because the value is in range
  const std::string text = with_fraction(std::to_string(time.seconds), time.nanos) + "s";
  return negative ? "-" + text : text;
}

}  // namespace bulkhead::cel
