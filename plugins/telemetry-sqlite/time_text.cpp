#include "telemetry-sqlite/time_text.hpp"

#include <chrono>

namespace telemetry_sqlite {

std::string time_text(std::uint64_t unix_ns) {
  using std::chrono::days;
  using std::chrono::milliseconds;
  const std::chrono::sys_time<milliseconds> time{
      milliseconds(static_cast<std::int64_t>(unix_ns / 1'000'000u))};
  const auto day = std::chrono::floor<days>(time);
  const std::chrono::year_month_day date{day};
  const std::chrono::hh_mm_ss clock{time - day};
  std::string out = "0000-00-00T00:00:00.000Z";
  const auto put = [&out](std::size_t end, auto value) {
    for (auto n = static_cast<unsigned>(value); n != 0; n /= 10) {
      out[--end] = static_cast<char>('0' + n % 10);
    }
  };
  put(4, static_cast<int>(date.year()));  // the range is 1970 to 2554
  put(7, static_cast<unsigned>(date.month()));
  put(10, static_cast<unsigned>(date.day()));
  put(13, clock.hours().count());
  put(16, clock.minutes().count());
  put(19, clock.seconds().count());
  put(23, clock.subseconds().count());
  return out;
}

}  // namespace telemetry_sqlite
