#include "pipe/attempts.hpp"

#include <catch2/catch.hpp>

using namespace bulkhead;
using namespace bulkhead::pipe;

namespace {

const Error refused{BH_E_UNAVAILABLE, "refused"};

struct World {
  RouteLimits limits;
  Attempts attempts{limits};
  std::uint64_t now = 1;

  World() { attempts.start(now); }
  void pass(std::uint64_t ms) { now += ms * ms_in_ns; }
  std::string failed() { return attempts.failed(now, "e", refused); }
};

}  // namespace

TEST_CASE("the first connection is attempted until start_ms and logged once") {
  World w;
  CHECK(w.failed() == "cannot reach e yet (refused); retrying for 30.0 s");
  CHECK(w.attempts.retry_ms() == w.limits.first_retry_ms);
  CHECK(w.failed().empty());
  CHECK(w.attempts.retry_ms() == 2 * w.limits.first_retry_ms);
  for (int i = 0; i < 9; ++i) CHECK(w.failed().empty());
  CHECK(w.attempts.retry_ms() == w.limits.max_retry_ms);
  w.pass(w.limits.start_ms - 1);
  CHECK_FALSE(w.attempts.was_last(w.now, refused));
  w.pass(1);
  CHECK(w.attempts.was_last(w.now, refused));
}

TEST_CASE("a wrong address is attempted once, unless a connection succeeded before") {
  World w;
  for (const bh_status code : {BH_E_INVALID, BH_E_DENIED}) {
    CHECK(w.attempts.was_last(w.now, {code, "wrong"}));
  }
  CHECK(w.attempts.connected(w.now, "e").empty());
  w.attempts.lost(w.now);
  w.pass(10 * w.limits.start_ms);
  for (const bh_status code : {BH_E_INVALID, BH_E_DENIED, BH_E_UNAVAILABLE}) {
    CHECK_FALSE(w.attempts.was_last(w.now, {code, "wrong"}));
  }
}

TEST_CASE("after a stable connection, the first retry is immediate; otherwise, delays increase") {
  World w;
  w.attempts.connected(w.now, "e");
  w.pass(w.limits.steady_ms);
  CHECK(w.attempts.lost(w.now) == 0);
  std::uint64_t before = 0;
  for (int i = 0; i < 3; ++i) {
    w.attempts.connected(w.now, "e");
    w.pass(w.limits.steady_ms - 1);
    const std::uint64_t delay = w.attempts.lost(w.now);
    CHECK(delay > before);
    before = delay;
  }
  for (int i = 0; i < 9; ++i) before = w.attempts.lost(w.now);
  CHECK(before == w.limits.max_retry_ms);
}

TEST_CASE("a long outage is logged once per reminder_ms; its end is logged with its duration") {
  World w;
  w.attempts.connected(w.now, "e");
  w.attempts.lost(w.now);
  for (int i = 0; i < 2; ++i) {
    w.pass(w.limits.reminder_ms - 1);
    CHECK(w.failed().empty());
    w.pass(1);
    CHECK(w.failed().starts_with("still no connection to e after " +
                                 seconds((i + 1) * w.limits.reminder_ms * ms_in_ns)));
    CHECK(w.failed().empty());
  }
  w.pass(1'500);
  CHECK(w.attempts.connected(w.now, "e") == "reconnected to e after 61.5 s");
}
