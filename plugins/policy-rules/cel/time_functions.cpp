// Implements the functions that access timestamps and durations, such as getHours().
#include "functions.hpp"
#include "time.hpp"

namespace bulkhead::cel {
namespace {

Value part_of(const Calendar &c, char part) {
  const auto number = [](std::int64_t value) { return Value::of(value); };
  switch (part) {
    case 'Y':
      return number(c.year);
    case 'M':
      return number(c.month);
    case 'D':
      return number(c.day);
    case 'd':
      return number(c.day - 1);
    case 'y':
      return number(c.day_of_year);
    case 'w':
      return number(c.day_of_week);
    case 'h':
      return number(c.hour);
    case 'm':
      return number(c.minute);
    case 's':
      return number(c.second);
    default:
      return number(c.millisecond);
  }
}

template <char part>
Value in_utc(Context &, const Value *a) {
  return part_of(calendar(a[0].time()), part);
}

template <char part>
Value in_zone(Context &, const Value *a) {
  const auto zone = parse_zone(a[1].text());
  if (!zone) return Value::error("a time zone must be UTC or an offset such as +02:00");
  Time local = a[0].time();
  local.seconds += *zone;
  return part_of(calendar(local), part);
}

template <std::int64_t unit>
Value whole(Context &, const Value *a) {
  const Time time = a[0].time();
  // `seconds` has been rounded down, but the result must be rounded toward zero.
  const std::int64_t seconds = time.seconds < 0 && time.nanos > 0 ? time.seconds + 1 : time.seconds;
  return Value::of(seconds / unit);
}

Value milliseconds_of_duration(Context &, const Value *a) {
  const Time time = a[0].time();
  constexpr std::int64_t billion = 1'000'000'000;
  const std::int64_t nanos = time.seconds < 0 && time.nanos > 0 ? time.nanos - billion : time.nanos;
  return Value::of(nanos / 1'000'000);
}

}  // namespace

std::span<const Overload> time_overloads() {
  using enum Kind;
  static constexpr Overload table[] = {
      {"getFullYear", true, 1, {kTimestamp, kDyn}, kInt, in_utc<'Y'>},
      {"getFullYear", true, 2, {kTimestamp, kString}, kInt, in_zone<'Y'>},
      {"getMonth", true, 1, {kTimestamp, kDyn}, kInt, in_utc<'M'>},
      {"getMonth", true, 2, {kTimestamp, kString}, kInt, in_zone<'M'>},
      {"getDate", true, 1, {kTimestamp, kDyn}, kInt, in_utc<'D'>},
      {"getDate", true, 2, {kTimestamp, kString}, kInt, in_zone<'D'>},
      {"getDayOfMonth", true, 1, {kTimestamp, kDyn}, kInt, in_utc<'d'>},
      {"getDayOfMonth", true, 2, {kTimestamp, kString}, kInt, in_zone<'d'>},
      {"getDayOfYear", true, 1, {kTimestamp, kDyn}, kInt, in_utc<'y'>},
      {"getDayOfYear", true, 2, {kTimestamp, kString}, kInt, in_zone<'y'>},
      {"getDayOfWeek", true, 1, {kTimestamp, kDyn}, kInt, in_utc<'w'>},
      {"getDayOfWeek", true, 2, {kTimestamp, kString}, kInt, in_zone<'w'>},
      {"getHours", true, 1, {kTimestamp, kDyn}, kInt, in_utc<'h'>},
      {"getHours", true, 2, {kTimestamp, kString}, kInt, in_zone<'h'>},
      {"getHours", true, 1, {kDuration, kDyn}, kInt, whole<3600>},
      {"getMinutes", true, 1, {kTimestamp, kDyn}, kInt, in_utc<'m'>},
      {"getMinutes", true, 2, {kTimestamp, kString}, kInt, in_zone<'m'>},
      {"getMinutes", true, 1, {kDuration, kDyn}, kInt, whole<60>},
      {"getSeconds", true, 1, {kTimestamp, kDyn}, kInt, in_utc<'s'>},
      {"getSeconds", true, 2, {kTimestamp, kString}, kInt, in_zone<'s'>},
      {"getSeconds", true, 1, {kDuration, kDyn}, kInt, whole<1>},
      {"getMilliseconds", true, 1, {kTimestamp, kDyn}, kInt, in_utc<'f'>},
      {"getMilliseconds", true, 2, {kTimestamp, kString}, kInt, in_zone<'f'>},
      {"getMilliseconds", true, 1, {kDuration, kDyn}, kInt, milliseconds_of_duration},
  };
  return table;
}

}  // namespace bulkhead::cel
