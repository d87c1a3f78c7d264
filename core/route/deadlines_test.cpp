// Tests the deadlines of calls and of the lanes' own requests.
#include "route/deadlines.hpp"

#include <catch2/catch.hpp>

#include "route/fakes.hpp"

using namespace bulkhead;

namespace {

struct World {
  std::unique_ptr<Reactor> loop = *Reactor::create();
  CallTable calls;
  ExchangeTable exchanges;
  std::vector<std::uint64_t> due_calls, due_exchanges;
  std::function<void()> on_first;
  Deadlines deadlines{calls,
                      exchanges,
                      *loop,
                      {[this](Call &call) {
                         CHECK(call.deadline_tick == 0);
                         due_calls.push_back(call.id);
                         call_once(on_first);
                       },
                       [this](Exchange &e) { due_exchanges.push_back(e.id); }}};
};

}  // namespace

TEST_CASE("calls and exchanges with expired deadlines are disarmed and reported") {
  World w;
  Call &call = *w.calls.open();
  Exchange &exchange = *w.exchanges.open();
  w.deadlines.arm(call, 1);
  w.deadlines.arm(exchange, 1);
  CHECK(wait_for(*w.loop, [&] { return !w.due_calls.empty() && !w.due_exchanges.empty(); }));
  CHECK(w.due_calls == std::vector{call.id});
  CHECK(w.due_exchanges == std::vector{exchange.id});
  CHECK_FALSE(w.calls.any_armed());
}

TEST_CASE("a deadline that was replaced or suspended does not expire") {
  World w;
  Call &replaced = *w.calls.open(), &suspended = *w.calls.open(), &due = *w.calls.open();
  for (Call *call : {&replaced, &suspended, &due}) w.deadlines.arm(*call, 1);
  w.deadlines.arm(replaced, 3'600'000);
  w.deadlines.suspend(suspended);
  CHECK(wait_for(*w.loop, [&] { return !w.due_calls.empty(); }));
  CHECK(w.due_calls == std::vector{due.id});
  CHECK(replaced.timeout_ms == 3'600'000);
}

TEST_CASE("a call that finishes while another call's deadline is handled is not reported") {
  World w;
  Call &first = *w.calls.open(), &second = *w.calls.open();
  w.deadlines.arm(first, 1);
  w.deadlines.arm(second, 1);
  const std::uint64_t both[] = {first.id, second.id};
  w.on_first = [&] {
    for (const std::uint64_t id : both) {
      Call *call = w.calls.get(id);
      if (call != nullptr && id != w.due_calls.front()) w.calls.close(*call);
    }
  };
  CHECK(wait_for(*w.loop, [&] { return !w.due_calls.empty(); }));
  w.loop->poll(0);
  CHECK(w.due_calls.size() == 1);
}
