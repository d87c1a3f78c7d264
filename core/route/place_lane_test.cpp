// Tests the lane of a tools plugin without a Router.
#include "route/place_lane.hpp"

#include <catch2/catch.hpp>
#include <memory>
#include <utility>

#include "route/call_input.hpp"
#include "route/fakes.hpp"
#include "route/session.hpp"
#include "route/stateless_form.hpp"

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
  StatelessForm form{false};
  Session *session = nullptr;  // the client of the calls
  std::string state;           // the plugin's own requestState, which the client has returned
  std::string more;            // further params
  bool repeats = false;        // a client of MCP 2026-07-28, which repeats its requests
  std::string members;         // the members to add when the gateway repeats a call
  Call &call(std::string rewritten = {}, mcp::Method method = mcp::Method::tools_call) {
    const Scanned m(R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"s__x",)"
                    R"("arguments":{"a":1})" +
                    more + "}}");
    Call &made = *calls.open();
    made.name = "x";
    made.method = method;
    made.session = session;
    if (repeats) made.request.reply.form = &form;
    if (!members.empty()) {
      made.input = std::make_unique<CallInput>();
      made.input->rounds = 1;
      made.input->members = members;
    }
    Exchange &e = *table.open();
    e.call = &made;
    e.method = method;
    made.exchange = &e;
    lane->attach(e);
    lane->submit(e, {m.get(), {lane, {}, m.scan.name}, std::move(rewritten), {}, state});
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

namespace {

const std::string trace = "00-0123456789abcdef0123456789abcdef-0123456789abcdef-01";

}  // namespace

TEST_CASE("a plugin receives the client's identity and the request's traceparent") {
  World w;
  w.lane->start();
  CHECK(w.plugin.lists.size() == 4);
  for (const auto &client : w.plugin.lists) {
    CHECK(client.first == 0);
    CHECK(client.second.empty());
  }
  Session session;
  session.handle = 77;
  session.principal = "uid:1000";
  w.session = &session;
  w.more = R"(,"_meta":{"traceparent":")" + trace + R"("})";
  w.call();
  REQUIRE(w.plugin.infos.size() == 1);
  CHECK(w.plugin.infos[0].session == 77);
  CHECK(w.plugin.infos[0].principal == "uid:1000");
  CHECK(w.plugin.infos[0].traceparent == trace);
  CHECK(w.plugin.infos[0].flags == 0);
}

TEST_CASE("an invalid traceparent is not passed on") {
  const std::string meta =
      GENERATE(as<std::string>{}, R"({"traceparent":"00-0-0-01"})", R"({"traceparent":1})", "{}",
               R"({"traceparent":"00-00000000000000000000000000000000-0123456789abcdef-01"})");
  World w;
  w.lane->start();
  w.more = R"(,"_meta":)" + meta;
  w.call();
  REQUIRE(w.plugin.infos.size() == 1);
  CHECK(w.plugin.infos[0].traceparent.empty());
}

TEST_CASE("a plugin receives the reason for a cancellation, and the client's text") {
  World w;
  w.lane->start();
  const Scanned note(R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":)"
                     R"({"requestId":1,"reason":"too \"slow\""}})");
  const Scanned plain(
      R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}})");
  const Scanned odd(
      R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"reason":7}})");
  const auto retract = [&w](std::uint64_t call, const Scanned &m) {
    w.lane->retract(call, true, {BH_CANCEL_CLIENT, m.get().bytes, m.get().scan});
  };
  retract(1, note);
  retract(2, plain);
  retract(3, odd);
  w.lane->retract(4, true, {BH_CANCEL_DEADLINE});
  w.lane->retract(5, false, {BH_CANCEL_DEADLINE});  // the plugin does not know the call
  CHECK(w.plugin.cancelled == std::vector<bh_call>{1, 2, 3, 4});
  using Reasons = std::vector<std::pair<std::uint32_t, std::string>>;
  CHECK(w.plugin.reasons == Reasons{{BH_CANCEL_CLIENT, "too \"slow\""},
                                    {BH_CANCEL_CLIENT, ""},
                                    {BH_CANCEL_CLIENT, ""},
                                    {BH_CANCEL_DEADLINE, ""}});
}

TEST_CASE("a plugin that asks for input receives what clients support and have answered") {
  World w;
  w.plugin.features = BH_TOOLS_ASKS_INPUT;
  w.lane->start();
  CHECK(w.lane->server_caps().asks_input);
  Session session;
  session.caps = cap::elicitation | cap::sampling | cap::roots;
  w.session = &session;
  Call &first = w.call();
  CHECK(first.input != nullptr);
  CHECK((first.declared & cap::roots) == 0);  // plugins cannot read the clients' roots
  w.drop(*std::exchange(first.exchange, nullptr));
  w.members = R"("requestState":"a\u0062","inputResponses":{"r":{"action":"accept"}},)";
  w.call();
  REQUIRE(w.plugin.infos.size() == 2);
  CHECK(w.plugin.infos[0].flags == (BH_CALL_ELICITATION | BH_CALL_SAMPLING));
  CHECK(w.plugin.infos[0].input_responses.empty());
  CHECK(w.plugin.infos[0].request_state.empty());
  CHECK(w.plugin.infos[1].input_responses == R"({"r":{"action":"accept"}})");
  CHECK(w.plugin.infos[1].request_state == "ab");
}

TEST_CASE("answers of a client count only with a state that the gateway has sealed") {
  World w;
  w.plugin.features = BH_TOOLS_ASKS_INPUT;
  w.lane->start();
  w.repeats = true;
  w.more = R"(,"inputResponses":{"r":{"action":"accept"}},"_meta":{)"
           R"("io.modelcontextprotocol/protocolVersion":"2026-07-28",)"
           R"("io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},)"
           R"("io.modelcontextprotocol/clientCapabilities":{}})";
  Call &forged = w.call();
  w.drop(*std::exchange(forged.exchange, nullptr));
  w.state = R"("")";  // the plugin's result had no requestState
  w.more += R"(,"requestState":"sealed")";
  Call &asked = w.call();
  w.drop(*std::exchange(asked.exchange, nullptr));
  w.state = R"("mine")";
  w.call();
  REQUIRE(w.plugin.infos.size() == 3);
  CHECK(w.plugin.infos[0].input_responses.empty());
  CHECK(w.plugin.infos[0].request_state.empty());
  CHECK(w.plugin.infos[1].input_responses == R"({"r":{"action":"accept"}})");
  CHECK(w.plugin.infos[1].request_state.empty());
  CHECK(w.plugin.infos[2].input_responses == R"({"r":{"action":"accept"}})");
  CHECK(w.plugin.infos[2].request_state == "mine");
}

TEST_CASE("a plugin that does not ask for input receives no request that was repeated with input") {
  World w;
  w.lane->start();
  CHECK_FALSE(w.lane->server_caps().asks_input);
  Session session;
  session.caps = cap::elicitation;
  w.session = &session;
  Call &first = w.call();
  CHECK(first.input == nullptr);
  REQUIRE(w.plugin.infos.size() == 1);
  CHECK(w.plugin.infos[0].flags == 0);
  w.drop(*std::exchange(first.exchange, nullptr));
  if (GENERATE(true, false)) {
    w.members = R"("requestState":"a",)";
  } else {
    w.state = R"("a")";
  }
  w.call();
  CHECK(w.plugin.infos.size() == 1);
  REQUIRE(w.failures.size() == 1);
  CHECK(w.failures[0].error_code == code::invalid_params);
  CHECK(w.failures[0].text.find("send the request again") != std::string::npos);
}

TEST_CASE("a plugin receives only the methods that it supports") {
  World w;
  w.lane->start();
  for (const mcp::Method method :
       {mcp::Method::completion_complete, mcp::Method::resources_subscribe,
        mcp::Method::resources_unsubscribe}) {
    w.call({}, method);
  }
  CHECK(w.plugin.calls.empty());
  REQUIRE(w.failures.size() == 3);
  for (const auto &failure : w.failures) CHECK(failure.error_code == code::method_not_found);
  CHECK(w.failures[0].text == "server \"s\" does not support completion/complete");
  w.plugin.features = BH_TOOLS_SUBSCRIBE;
  w.lane->began();
  w.call({}, mcp::Method::resources_subscribe);
  CHECK(w.plugin.calls.size() == 1);
}
