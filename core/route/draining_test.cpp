// Tests that a removed server is closed after its last call or at the time limit.
#include "route/draining.hpp"

#include <catch2/catch.hpp>

#include "route/fakes.hpp"

using namespace bulkhead;

namespace {

const bh_tools no_tools = {
    sizeof(bh_tools),
    0,
    [](void *, const bh_list_info *, bh_buf *, bh_error *) -> bh_status {
      return BH_E_UNSUPPORTED;
    },
    [](void *, bh_call, const bh_call_info *, bh_error *) -> bh_status { return BH_PENDING; },
    [](void *, bh_call, const bh_cancel *) {},
    nullptr,
};

struct World : Draining::Owner {
  FakeLaneHost host;
  CallTable calls;
  Draining draining{host.own_limits, *host.loop, calls, *this};
  std::vector<std::uint64_t> parked, ended;
  std::uint32_t gone = 0;
  Upstream *upstream = nullptr;
  Lane *lane = nullptr;

  ~World() override { draining.end_all(); }
  std::vector<std::uint64_t> waiting_for(const Lane &) const override { return parked; }
  void end_drained(Call &call, Lane &) override {
    ended.push_back(call.id);
    std::erase(parked, call.id);
    end(call);
  }
  void drained() override { ++gone; }

  Upstreams::List server() {
    auto made = std::make_unique<Upstream>(host, server_named("s"));
    made->tools = &no_tools;
    made->self = this;
    upstream = made.get();
    lane = made->lane_for(0, 0);
    lane->start();
    Upstreams::List list;
    list.push_back(std::move(made));
    return list;
  }
  Call &call_at_server() {
    Call &call = *calls.open();
    Exchange &e = *host.table.open();
    e.call = &call;
    call.exchange = &e;
    lane->attach(e);
    return call;
  }
  void end(Call &call) {
    if (call.exchange != nullptr) host.drop(*std::exchange(call.exchange, nullptr));
    calls.close(call);
    draining.look_later();
  }
  void turn() { host.loop->poll(0); }
};

}  // namespace

TEST_CASE("a removed server without calls is closed in the next turn") {
  World w;
  w.draining.add(w.server());
  CHECK(w.draining.has(w.upstream));
  CHECK(w.draining.size() == 1);
  w.turn();
  CHECK(w.draining.size() == 0);
  CHECK(w.gone == 1);
  CHECK(w.host.count("ends") == 1);
  w.draining.add({});
  w.turn();
  CHECK(w.gone == 1);
}

TEST_CASE(
    "a removed server stays open until all of its calls have finished, including parked calls") {
  World w;
  auto servers = w.server();
  Call &running = w.call_at_server();
  Call &waiting = *w.calls.open();
  w.parked = {waiting.id};
  w.draining.add(std::move(servers));
  w.turn();
  CHECK(w.draining.size() == 1);
  w.end(running);
  w.turn();
  CHECK(w.draining.size() == 1);
  w.parked.clear();
  w.end(waiting);
  w.turn();
  CHECK(w.draining.size() == 0);
  CHECK(w.ended.empty());
}

TEST_CASE("calls to a removed server fail at the time limit") {
  World w;
  w.host.own_limits.drain_ms = 0;
  auto servers = w.server();
  const std::uint64_t running = w.call_at_server().id, waiting = w.calls.open()->id;
  w.parked = {waiting};
  w.draining.add(std::move(servers));
  w.turn();
  CHECK(w.ended == std::vector{waiting, running});
  CHECK(wait_for(*w.host.loop, [&] { return w.gone == 1; }));
  CHECK(w.draining.size() == 0);
}

TEST_CASE("all draining servers are closed immediately when the gateway shuts down") {
  World w;
  w.draining.add(w.server());
  w.draining.end_all();
  CHECK(w.draining.ended());
  CHECK(w.host.count("ends") == 1);
  w.turn();
  CHECK(w.gone == 0);
}
