#include "route/reopening.hpp"

#include <catch2/catch.hpp>
#include <string>

using bulkhead::Reopening;
using bulkhead::SealTime;

namespace {

constexpr std::uint64_t minute = 60ull * 1'000'000'000u, idle = 30 * minute;
constexpr std::uint64_t day = Reopening::day_ns;
constexpr SealTime early{5 * minute, false}, earlier{5 * minute, true};

}  // namespace

TEST_CASE("a sealed id is accepted for a day, no matter how many sessions are evicted") {
  Reopening reopening;
  reopening.evicted("mine", early, 6 * minute, idle);
  for (std::size_t i = 0; i < Reopening::max_ids + 10; ++i) {
    reopening.evicted("other" + std::to_string(i), early, 7 * minute, idle);
  }
  CHECK(reopening.allows("mine", early, 8 * minute, idle, false));
  CHECK(reopening.allows("mine", early, day, idle, false));
  CHECK_FALSE(reopening.allows("mine", early, day + 5 * minute, idle, false));
}

TEST_CASE("an old evicted session can be resumed until it exceeds the idle limit") {
  Reopening reopening;
  const std::uint64_t late = day - 10 * minute;
  reopening.evicted("a", early, late, idle);
  // Ids with recent seals are not stored, so they do not displace "a".
  for (std::size_t i = 0; i < Reopening::max_ids + 10; ++i) {
    reopening.evicted("b" + std::to_string(i), {late, false}, late, idle);
  }
  CHECK(reopening.allows("a", early, late + idle - 1, idle, false));
  CHECK_FALSE(reopening.allows("a", early, late + idle, idle, false));
  reopening.reopened("a");
  CHECK_FALSE(reopening.allows("a", early, late + idle - 1, idle, false));
}

TEST_CASE("a long idle limit extends the validity of seals") {
  Reopening reopening;
  CHECK(reopening.allows("a", early, 4 * day, 3 * day, false));
  reopening.evicted("a", early, 4 * day, 3 * day);
  CHECK(reopening.allows("a", early, 7 * day - 1, 3 * day, false));
  CHECK_FALSE(reopening.allows("a", early, 7 * day, 3 * day, false));
}

TEST_CASE("a session that has ended permanently cannot be resumed") {
  Reopening reopening;
  reopening.ended("a", 6 * minute);
  reopening.ended("", 6 * minute);
  CHECK_FALSE(reopening.allows("a", early, 7 * minute, idle, false));
  CHECK_FALSE(reopening.allows("a", earlier, 7 * minute, idle, true));
  CHECK(reopening.allows("b", early, 7 * minute, idle, false));
}

TEST_CASE("sessions of earlier processes can be resumed if they cannot be too old") {
  Reopening reopening;
  CHECK(reopening.allows("a", earlier, 6 * minute, idle, true));
  CHECK_FALSE(reopening.allows("a", earlier, 6 * minute, idle, false));
  reopening.evicted("a", earlier, 6 * minute, idle);
  CHECK(reopening.allows("a", earlier, 7 * minute, idle, false));
}
