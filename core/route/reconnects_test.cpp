// Tests the time of the next connection attempt.
#include "route/reconnects.hpp"

#include "route/lane_part_fakes.hpp"

using namespace bulkhead;

namespace {

struct Parts : LaneParts {
  int attempts = 0;
  Reconnects reconnects{*this, &lane, bh::callback(this, [](Parts &p) { ++p.attempts; })};

  Parts() {
    own_limits.retry_min_ms = 8;
    own_limits.retry_max_ms = 20;
  }
  // Schedules an attempt, waits for it and returns its delay in milliseconds.
  std::uint64_t delay(std::uint32_t retry_after_ms) {
    const std::uint64_t before = loop->now_ns();
    const int attempts_before = attempts;
    reconnects.schedule(retry_after_ms);
    REQUIRE(wait_for(*loop, [&] { return attempts != attempts_before; }));
    return (loop->now_ns() - before) / 1'000'000;
  }
};

}  // namespace

TEST_CASE("an attempt is made no earlier than the backoff and the server permit") {
  struct Case {
    std::string about;
    std::uint32_t failures, retry_after_ms;
    std::uint64_t at_least_ms;
  };
  // The jitter is at most a quarter of the backoff.
  const std::vector<Case> cases = {
      {"no failure", 0, 0, 6},
      {"first failure", 1, 0, 6},
      {"second failure", 2, 0, 12},
      {"the backoff has a maximum", 40, 0, 15},
      {"the server asks for more", 1, 18, 18},
      {"more than the maximum", 1, 4'000'000'000u, 20},
  };
  for (const Case &c : cases) {
    INFO(c.about);
    Parts p;
    for (std::uint32_t i = 0; i < c.failures; ++i) p.reconnects.failed();
    CHECK(p.delay(c.retry_after_ms) >= c.at_least_ms);
    CHECK(p.attempts == 1);
    CHECK(p.loop->held(&p.lane).timers == 0);
  }
}

TEST_CASE("only one attempt is scheduled, and it can be cancelled") {
  Parts p;
  p.reconnects.schedule(0);
  p.reconnects.schedule(0);
  CHECK(p.loop->held(&p.lane).timers == 1);
  SECTION("cancelled") {
    p.reconnects.cancel();
  }
  SECTION("connected in the meantime") {
    p.reconnects.ready();
  }
  CHECK(p.loop->held(&p.lane).timers == 0);
}

TEST_CASE("a series of failures ends when it is reset, but not with a short connection") {
  Parts p;
  for (std::uint32_t i = 1; i <= Reconnects::max_failures; ++i) {
    CHECK_FALSE(p.reconnects.exhausted());
    p.reconnects.failed();
    CHECK(p.reconnects.failures() == i);
  }
  CHECK(p.reconnects.exhausted());
  p.reconnects.ready();
  p.reconnects.lost();
  CHECK(p.reconnects.exhausted());
  p.reconnects.reset();
  CHECK(p.reconnects.failures() == 0);
  CHECK_FALSE(p.reconnects.exhausted());
}
