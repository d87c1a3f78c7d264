// Tests when an idle server is stopped.
#include "route/idle_stop.hpp"

#include "route/lane_part_fakes.hpp"

using namespace bulkhead;

namespace {

ServerDef lazy_server(bool lazy, std::uint64_t idle_stop_ms) {
  ServerDef def = server_named("s");
  def.lazy = lazy;
  def.idle_stop_ms = idle_stop_ms;
  return def;
}

struct Parts : LaneParts, IdleStop::Owner {
  IdleStop idle{lane, *this, *this};
  int stops = 0, asked = 0;
  int busy_until = 0;  // how often busy() returns true

  explicit Parts(bool lazy = true, std::uint64_t idle_stop_ms = 5)
      : LaneParts(lazy_server(lazy, idle_stop_ms)) {
    lane.is_lazy = lazy;
    lane.set_state(LaneState::ready);
  }
  bool busy() override { return asked++ < busy_until; }
  void stop_idle() override { ++stops; }
  std::size_t timers() const { return loop->held(&lane).timers; }
};

}  // namespace

TEST_CASE("only a lazy server with idle_stop_ms is watched") {
  struct Case {
    bool lazy;
    std::uint64_t idle_stop_ms;
    std::size_t timers;
  };
  for (const Case &c : {Case{true, 5, 1}, Case{true, 0, 0}, Case{false, 5, 0}}) {
    INFO(c.lazy << " " << c.idle_stop_ms);
    Parts p(c.lazy, c.idle_stop_ms);
    p.idle.watch();
    p.idle.watch();
    CHECK(p.timers() == c.timers);
  }
}

TEST_CASE("a server is stopped once it has been idle for the time") {
  Parts p;
  SECTION("it was never used") {}
  SECTION("it was busy at first") {
    p.busy_until = 3;
  }
  p.idle.watch();
  REQUIRE(wait_for(*p.loop, [&] { return p.stops != 0; }));
  CHECK(p.asked == p.busy_until + 1);
  CHECK(p.stops == 1);
  CHECK(p.timers() == 0);
}

TEST_CASE("a server that is not ready is not stopped") {
  Parts p;
  p.idle.watch();
  p.lane.set_state(LaneState::waiting);
  REQUIRE(wait_for(*p.loop, [&] { return p.timers() == 0; }));
  CHECK(p.asked == 0);
  CHECK(p.stops == 0);
}

TEST_CASE("a server that was closed is no longer watched") {
  Parts p;
  p.idle.watch();
  p.idle.cancel();
  CHECK(p.timers() == 0);
}
