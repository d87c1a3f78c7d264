// Implements timestamps and durations: arithmetic, calendar fields, parsing and formatting.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "value.hpp"

namespace bulkhead::cel {

bool in_timestamp_range(Time time);  // years 1 to 9999
bool in_duration_range(Time time);   // +- 315,576,000,000 s, about 10,000 years

std::optional<Time> sum(Time a, Time b);  // nullopt on overflow, like difference()
std::optional<Time> difference(Time a, Time b);

struct Calendar {
  std::int64_t year;
  int month;        // 0 = January
  int day;          // day of the month, from 1
  int day_of_year;  // from 0
  int day_of_week;  // 0 = Sunday
  int hour, minute, second, millisecond;
};
Calendar calendar(Time time);  // UTC

// Timestamps are in RFC 3339 format, such as "2026-11-22T06:00:00.5Z" or
// "2026-11-22T08:00:00+02:00".
std::optional<Time> parse_timestamp(std::string_view text);
std::string format_timestamp(Time time);

// Durations use the units h, m, s, ms, us and ns, as in "90s", "1h30m" or "-1.5ms".
std::optional<Time> parse_duration(std::string_view text);
std::string format_duration(Time time);  // "5400s", "0.5s"

// Parses a UTC offset, such as "UTC", "Z", "+02:00", "-07:30" or "02:00". Returns the number of
// seconds east of UTC. Time zone names are not supported.
std::optional<int> parse_zone(std::string_view text);

}  // namespace bulkhead::cel
