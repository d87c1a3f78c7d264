// Tests connections that fail, are lost, or are not yet open when a call arrives, and requests that
// wait for a connection.
#include <algorithm>
#include <catch2/catch.hpp>
#include <string>

#include "embed/policy_world.hpp"

using namespace bulkhead;

TEST_CASE("a request that moves to other servers waits only until their time limit") {
  World w;
  w.start();
  w.up.hold_tools = true;
  RawClient there(*w.host), g(*w.host);
  there.initialize(R"({"elicitation":{}})");
  there.deliver(list_tools);
  // The list is sent without the tools of the servers that have not responded to tools/list.
  REQUIRE(w.turn_until([&] { return there.has(R"("id":9)"); }));
  g.initialize(R"({"sampling":{}})");
  g.deliver(list_tools);
  CHECK_FALSE(g.has(R"("id":9)"));
  g.initialize(R"({"elicitation":{}})");
  CHECK(g.has(R"("id":9,"result")"));
}

TEST_CASE("a request waits for the next lazy server when one fails immediately") {
  World w;
  w.profile.servers[0].lazy = w.profile.servers[1].lazy = true;
  w.profile.limits.first_list_wait_ms = 60'000;
  w.up.refused_server = "a";
  w.start();
  Client c(*w.host);
  c.end->send(list_tools);
  REQUIRE(w.turn_until([&] { return !c.got.empty(); }));
  CHECK(c.got[0].find("b__x") != std::string::npos);
}

TEST_CASE("a connection may be lost while one of its requests is being completed") {
  World w;
  w.profile.limits.request_timeout_ms = 60;
  w.start();
  w.up.hold_tools = true;
  w.up.send("a", R"({"jsonrpc":"2.0","method":"notifications/tools/list_changed"})");
  REQUIRE(w.up.last("a").find("tools/list") != std::string::npos);
  const std::size_t lanes = w.up.lanes.size();
  bool lost = false;
  w.up.on_abandon = [&](bh_lane lane) {
    w.up.on_abandon = nullptr;
    w.up.hold_tools = false;
    lost = true;
    w.up.lane_down(lane, bh::make_error(BH_E_UNAVAILABLE, "gave up"));
  };
  REQUIRE(w.turn_until([&] { return lost; }));
  REQUIRE(w.turn_until([&] {
    return w.status("a").state == ServerState::ready && w.host->status().in_flight == 0;
  }));
  // The request finished without using the new connection.
  CHECK(w.up.lanes.size() == lanes + 1);
  Client c(*w.host);
  c.call("1", "a__x");
  CHECK(w.host->status().in_flight == 1);
}

TEST_CASE("a connection that is lost inside on_ready receives no more messages") {
  World w;
  w.profile.limits.grace_ms = 60'000;
  w.start();
  Client c(*w.host);
  w.up.on_ready = [&](bh_lane lane) {
    w.up.on_ready = nullptr;
    w.up.lane_down(lane, bh::make_error(BH_E_UNAVAILABLE, "not so ready"));
  };
  c.on_message = [&] {
    c.on_message = nullptr;
    c.call("2", "a__x");  // needs a new connection immediately
  };
  w.up.fall("a", "killed by the test");
  c.call("1", "a__x");
  const std::size_t lanes = w.up.lanes.size();
  REQUIRE(w.turn_until([&] { return c.has("not so ready"); }));
  REQUIRE(w.up.lanes.size() == lanes + 1);
  REQUIRE(w.turn_until([&] { return w.up.last("a").find("tools/call") != std::string::npos; }));
  const std::vector<std::string> &sent = w.up.lane("a").sent;
  CHECK(std::count_if(sent.begin(), sent.end(), [](const std::string &m) {
          return m.find("notifications/initialized") != std::string::npos;
        }) == 1);
}

TEST_CASE("a removed server does not reconnect for its last call") {
  World w;
  w.profile.servers[0].pool_size = 2;
  w.profile.servers[0].pool_safe_tools = {"x"};
  w.profile.limits.grace_ms = 60'000;
  w.profile.limits.drain_ms = 60'000;
  w.start();
  Client c(*w.host);
  const auto open = [&] {
    return std::count_if(w.up.lanes.begin(), w.up.lanes.end(),
                         [](const FakeLane &l) { return l.open && l.server == "a"; });
  };
  REQUIRE(w.turn_until([&] { return open() == 2; }));
  w.turn(20);
  w.up.hold_tools = true;
  const auto first = std::find_if(w.up.lanes.begin(), w.up.lanes.end(),
                                  [](const FakeLane &l) { return l.server == "a"; });
  w.up.lane_down(first->handle, bh::make_error(BH_E_UNAVAILABLE, "killed by the test"));
  c.call("1", "a__y");  // queued until the new connection is open
  const auto list = [&]() -> std::string {
    const std::string &m = w.up.last("a");
    return m.find("tools/list") != std::string::npos ? FakeUpstreams::id_of(m) : std::string();
  };
  REQUIRE(w.turn_until([&] { return !list().empty(); }));
  w.profile.servers = {server("b")};
  REQUIRE(w.host->apply(w.profile).has_value());
  REQUIRE(w.turn_until([&] { return open() == 1; }));
  const std::size_t lanes = w.up.lanes.size();
  w.up.send("a", R"({"jsonrpc":"2.0","id":)" + list() + R"(,"result":{"tools":[{"name":"y"}]}})");
  REQUIRE(w.up.last("a").find("tools/call") != std::string::npos);
  CHECK(w.up.lanes.size() == lanes);
}
