// Tests the lane of a tools plugin without a Router.
#include "route/place_lane.hpp"

#include <catch2/catch.hpp>

#include "route/fakes.hpp"

using namespace bulkhead;

namespace {

struct World : FakeLaneHost {
  FakeTools plugin{R"([{"name":"x"}])"};
  CallTable calls;
  Upstream upstream{*this, [] {
                      ServerDef def = server_named("s");
                      def.max_in_flight = 1;
                      return def;
                    }()};
  ToolsLane *lane = nullptr;

  World() {
    upstream.tools = &tools_table;
    upstream.self = &plugin;
    lane = static_cast<ToolsLane *>(upstream.lane_for(0, 0));
  }
  ~World() override { upstream.remove(lane); }
  Call &call(std::string rewritten = {}, mcp::Method method = mcp::Method::tools_call) {
    const Scanned m(R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"s__x",)"
                    R"("arguments":{"a":1}}})");
    Call &made = *calls.open();
    made.name = "x";
    Exchange &e = *table.open();
    e.call = &made;
    e.method = method;
    made.exchange = &e;
    lane->attach(e);
    lane->submit(e, {m.get(), {lane, {}, m.scan.name}, std::move(rewritten), {}});
    return made;
  }
};

}  // namespace

TEST_CASE("a plugin is ready once its lists have arrived, immediately or later") {
  World w;
  if (GENERATE(true, false)) {
    w.plugin.listing = BH_PENDING;
    w.lane->start();
    CHECK(w.lane->state() == LaneState::connecting);
    CHECK_FALSE(w.lane->settled());
    w.plugin.listing = BH_OK;
    w.lane->list_changed(ItemKind::tool);
  } else {
    w.lane->start();
  }
  CHECK(w.lane->state() == LaneState::ready);
  CHECK(w.lane->listed());
  CHECK(w.lane->items(ItemKind::tool).items.size() == 1);
  CHECK(w.count("ready") == 1);
}

TEST_CASE("an invalid list is not shown, and calls fail with its error") {
  World w;
  const char *reason = "";
  SECTION("not JSON") {
    w.plugin.tools = "[{";
    reason = "is not valid JSON";
  }
  SECTION("an error") {
    w.plugin.listing = BH_E_UNAVAILABLE;
    reason = "the folder has gone";
  }
  w.lane->start();
  CHECK(w.lane->state() == LaneState::waiting);
  CHECK(w.lane->settled());
  CHECK_FALSE(w.lane->listed());
  w.call();
  REQUIRE(w.failures.size() == 1);
  CHECK(w.failures[0].text.find(reason) != std::string::npos);
  CHECK(w.plugin.calls.empty());
}

TEST_CASE("if a list cannot be read again, the old list is kept") {
  World w;
  w.lane->start();
  w.plugin.listing = BH_E_UNAVAILABLE;
  w.lane->list_changed(ItemKind::tool);
  CHECK(w.lane->state() == LaneState::ready);
  CHECK(w.lane->items(ItemKind::tool).items.size() == 1);
  CHECK(w.lane->reason().find("the folder has gone") != std::string::npos);
  CHECK(w.lines.size() == 1);
}

TEST_CASE("a call is sent with its arguments or the policy's replacement") {
  World w;
  w.lane->start();
  Call &call = w.call();
  CHECK(w.plugin.calls.back() == R"(tools/call x {"a":1})");
  CHECK(w.lane->in_flight == 1);
  w.drop(*std::exchange(call.exchange, nullptr));
  w.call(R"({"b":2})");
  CHECK(w.plugin.calls.back() == R"(tools/call x {"b":2})");
}

TEST_CASE("requests about tasks do not reach a plugin, which would run the tool") {
  World w;
  w.lane->start();
  for (const mcp::Method method :
       {mcp::Method::tasks_get, mcp::Method::tasks_result, mcp::Method::tasks_cancel}) {
    w.call({}, method);
  }
  CHECK(w.plugin.calls.empty());
  REQUIRE(w.failures.size() == 3);
  CHECK(w.failures[0].error_code == code::invalid_params);
  CHECK(w.failures[0].text == "Task not found: server \"s\" has no tasks");
}

TEST_CASE("a call may be refused at the limit, be refused by the plugin, or complete immediately") {
  World w;
  w.lane->start();
  SECTION("busy") {
    w.call();
    w.call();
    REQUIRE(w.failures.size() == 1);
    CHECK(w.failures[0].error_code == code::timeout);
    CHECK(w.plugin.calls.size() == 1);
  }
  SECTION("refused") {
    w.plugin.begins = BH_E_INVALID;
    w.call();
    REQUIRE(w.refusals.size() == 1);
    CHECK(w.refusals[0].code == BH_E_INVALID);
    CHECK(w.lane->in_flight == 0);
  }
  SECTION("completed immediately") {
    w.plugin.begins = BH_OK;
    w.call();
    CHECK(w.to_complete.size() == 1);
  }
  SECTION("the call finishes inside call_begin()") {
    w.plugin.inside = [&] { w.drop(*w.table.get(w.plugin.ids[0])); };
    w.call();
    CHECK(w.lane->in_flight == 0);
    CHECK(w.lane->exchanges.size == 0);
  }
}

TEST_CASE("subscriptions are sent only to a plugin that supports them, and do not count as calls") {
  World w;
  w.lane->start();
  w.lane->request_quietly(mcp::Method::resources_subscribe, R"({"uri":"note:\/\/\/1"})");
  CHECK(w.plugin.calls.empty());
  w.plugin.features = BH_TOOLS_SUBSCRIBE;
  w.lane->began();
  CHECK(w.count("ready") == 2);
  w.lane->request_quietly(mcp::Method::resources_subscribe, R"({"uri":"note:\/\/\/1"})");
  CHECK(w.plugin.calls == std::vector<std::string>{"resources/subscribe note:///1 "});
  CHECK(w.lane->in_flight == 0);
  w.plugin.begins = BH_E_LIMIT;
  w.lane->request_quietly(mcp::Method::resources_subscribe, R"({"uri":"note:///2"})");
  CHECK(w.refusals.size() == 1);
  w.lane->close();
  CHECK(w.table.size() == 0);
}

TEST_CASE("watches are removed if a restarted plugin does not support subscriptions") {
  World w;
  w.plugin.features = BH_TOOLS_SUBSCRIBE;
  w.lane->start();
  w.lane->watches["note:///1"].on = true;
  w.plugin.features = 0;
  w.lane->began();
  CHECK_FALSE(w.lane->watches["note:///1"].on);
  CHECK(w.lines.size() == 1);
}
