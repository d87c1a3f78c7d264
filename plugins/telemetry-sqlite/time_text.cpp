#include "telemetry-sqlite/time_text.hpp"

#include <chrono>
#include <cstdio>
#include <ctime>

namespace telemetry_sqlite {

std::string time_text(std::uint64_t unix_ns) {
  const auto seconds = static_cast<std::time_t>(unix_ns / 1'000'000'000u);
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  char out[80];
  std::snprintf(out, sizeof out, "%04d-%02d-%02dT%02d:%02d:%02d.%03uZ", parts.tm_year + 1900,
                parts.tm_mon + 1, parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec,
                static_cast<unsigned>(unix_ns / 1'000'000u % 1000u));
  return out;
}

std::uint64_t unix_ns_now() {
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                        std::chrono::system_clock::now().time_since_epoch())
                                        .count());
}

}  // namespace telemetry_sqlite
