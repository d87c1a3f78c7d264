#include "common/since.hpp"

#include <catch2/catch.hpp>

#include <cstdlib>
#include <ctime>

using namespace bulkhead::program;

TEST_CASE("times are parsed with and without an offset") {
  CHECK(since_text("2026-01-31T12:00:00Z") == "2026-01-31T12:00:00");
  CHECK(since_text("2026-01-31T12:00:00+05:30") == "2026-01-31T06:30:00");
  CHECK(since_text("2026-01-31 12:00:00.5z") == "2026-01-31T12:00:00.5");
  CHECK(since_text("2026-01-31T12:00:00.123456Z") == "2026-01-31T12:00:00.123");
  for (const char *wrong : {"", "10", "10x", "yesterday", "2026-01-31T12:00:00x", "-1h"}) {
    INFO(wrong);
    CHECK_FALSE(since_text(wrong).has_value());
  }
}

TEST_CASE("a time without an offset is local time") {
  ::setenv("TZ", "TST-5:30", 1);
  ::tzset();
  CHECK(since_text("2026-02-01 01:30:00.123") == "2026-01-31T20:00:00.123");
  CHECK(since_text("2026-02-01T01:30:00") == "2026-01-31T20:00:00");
}

TEST_CASE("timestamps are shown in local time or in UTC") {
  ::setenv("TZ", "TST-5:30", 1);
  ::tzset();
  CHECK(shown_time("2026-01-31T20:00:00.123Z", false) == "2026-02-01 01:30:00.123");
  CHECK(shown_time("2026-01-31T20:00:00.123Z", true) == "2026-01-31 20:00:00.123Z");
  for (const char *other : {"", "t", "2026-01-31T20:00:00Z", "2026-01-31T20:00:00.123+01:00"}) {
    INFO(other);
    CHECK(shown_time(other, false) == other);
    CHECK(shown_time(other, true) == other);
  }
}
