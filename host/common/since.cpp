#include "common/since.hpp"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <ctime>

#include "bulkhead/cpp/clock.hpp"

namespace bulkhead::program {
namespace {

std::string utc_text(std::time_t seconds) {
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  char out[40];
  std::strftime(out, sizeof out, "%Y-%m-%dT%H:%M:%S", &parts);
  return out;
}

}  // namespace

std::optional<std::string> since_text(std::string_view since) {
  std::uint64_t n = 0;
  const auto [rest, error] = std::from_chars(since.data(), since.data() + since.size(), n);
  if (error == std::errc() && rest + 1 == since.data() + since.size()) {
    const std::string_view units = "smhd";
    constexpr std::uint64_t seconds[] = {1, 60, 3'600, 86'400};
    const std::size_t unit = units.find(*rest);
    if (unit == units.npos || n > 100'000'000) return std::nullopt;
    return utc_text(static_cast<std::time_t>(bh::unix_s() - n * seconds[unit]));
  }
  // Parse an RFC 3339 time. The UTC offset is subtracted, because the database stores UTC times.
  std::tm parts{};
  const std::string text(since);
  const char *end = ::strptime(text.c_str(), "%Y-%m-%dT%H:%M:%S", &parts);
  if (end == nullptr) end = ::strptime(text.c_str(), "%Y-%m-%d %H:%M:%S", &parts);
  if (end == nullptr) return std::nullopt;
  std::string fraction;
  if (*end == '.') {
    const char *point = end++;
    while (*end >= '0' && *end <= '9') ++end;
    fraction.assign(point, std::min<std::ptrdiff_t>(end - point, 4));  // the database has 3 digits
  }
  const std::string_view zone(end);
  if (zone.empty()) {  // local time, as tables show it
    parts.tm_isdst = -1;
    return utc_text(std::mktime(&parts)) + fraction;
  }
  std::time_t offset = 0;
  if (zone.size() == 6 && (zone[0] == '+' || zone[0] == '-') && zone[3] == ':') {
    int hours = 0, minutes = 0;
    const auto number = [&](std::size_t at, int *out) {
      return std::from_chars(zone.data() + at, zone.data() + at + 2, *out).ec == std::errc();
    };
    if (!number(1, &hours) || !number(4, &minutes)) return std::nullopt;
    offset = (hours * 60 + minutes) * 60 * (zone[0] == '-' ? -1 : 1);
  } else if (zone != "Z" && zone != "z") {
    return std::nullopt;
  }
  return utc_text(::timegm(&parts) - offset) + fraction;
}

std::string shown_time(std::string_view timestamp, bool utc) {
  constexpr std::size_t seconds_end = 19, size = 24;
  std::tm parts{};
  const std::string text(timestamp);
  const char *end = ::strptime(text.c_str(), "%Y-%m-%dT%H:%M:%S", &parts);
  if (end != text.c_str() + seconds_end || text.size() != size || text.back() != 'Z') return text;
  const std::time_t seconds = ::timegm(&parts);
  utc ? ::gmtime_r(&seconds, &parts) : ::localtime_r(&seconds, &parts);
  char out[40];
  std::strftime(out, sizeof out, "%Y-%m-%d %H:%M:%S", &parts);
  return out + text.substr(seconds_end, 4) + (utc ? "Z" : "");
}

}  // namespace bulkhead::program
