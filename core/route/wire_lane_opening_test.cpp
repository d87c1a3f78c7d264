// Tests how a lane opens a connection to a server whose protocol generation is not known.
#include "bulkhead/cpp/clock.hpp"
#include "route/lane_world.hpp"
#include "route/stateless_server_edge.hpp"

using namespace bulkhead;

namespace {

const std::string discovered =
    R"({"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}})";
const std::string no_method = R"({"code":-32601,"message":"Method not found"})";

struct Unknown : LaneWorld {
  Unknown() : LaneWorld(8, ProtocolPin::automatic) { lane->start(); }
  void list() { answer("tools/list", R"({"tools":[{"name":"x"}]})"); }
  bool stateless_next() const { return upstream->protocol.first(bh::unix_s()).stateless(); }
};

}  // namespace

TEST_CASE("a stateless server is ready after server/discover, without a confirmation") {
  Unknown w;
  CHECK(w.methods() == Texts{R"("server/discover")"});
  w.answer("server/discover", discovered);
  CHECK(w.revision == "2026-07-28");
  CHECK(w.notified.empty());
  w.list();
  REQUIRE(w.lane->state() == LaneState::ready);
  CHECK(w.methods() == Texts{R"("server/discover")", R"("tools/list")"});
  CHECK(w.stateless_next());
  w.sent.clear();
  w.lane->request_quietly(mcp::Method::logging_set_level, R"({"level":"info"})");
  w.lane->request_quietly(mcp::Method::resources_subscribe, R"({"uri":"x:y"})");
  CHECK(w.sent.empty());
  CHECK_FALSE(w.lane->takes(mcp::Method::notifications_roots_list_changed));
}

TEST_CASE("requests have headers unless the server is a child process") {
  // The endpoint knows the type of a server, but neither its URL nor its command.
  const auto headers_of = [](const std::string &type, const std::string &url) {
    LaneWorld w(8, ProtocolPin::v2026_07_28);
    ServerDef def = w.def;
    def.type = type;
    def.url = url;
    Upstream upstream(w, def);
    upstream.connector = &LaneWorld::connector;
    upstream.self = &w;
    upstream.lane_for(0, 0)->start();
    const Texts headers = w.headers;
    while (!upstream.lanes().empty()) upstream.remove(upstream.lanes().back().get());
    return headers;
  };
  const Texts all = {"MCP-Protocol-Version: 2026-07-28", "Mcp-Method: server/discover"};
  CHECK(headers_of("http", "") == all);
  CHECK(headers_of("example-connector", "") == all);
  CHECK(headers_of("", "http://127.0.0.1:9/mcp") == all);
  CHECK(headers_of("stdio", "").empty());
}

TEST_CASE("a refused server/discover costs one round trip, and the verdict is remembered") {
  const std::string error = GENERATE(
      as<std::string>(), R"({"code":-32601,"message":"Method not found"})",
      R"({"code":-32602,"message":"before initialization"})", R"({"code":0,"message":""})",
      R"({"code":-32022,"message":"no","data":{"supported":["2025-11-25"],"requested":"2026-07-28"}})");
  Unknown w;
  w.refuse("server/discover", error);
  CHECK(w.methods() == Texts{R"("server/discover")", R"("initialize")"});
  CHECK(w.opened == 1);
  w.initialize();
  CHECK(w.revision == "2025-06-18");
  CHECK(w.notified.size() == 1);
  w.list();
  CHECK(w.lane->state() == LaneState::ready);
  CHECK_FALSE(w.stateless_next());
  w.sent.clear();
  w.lane->down({BH_E_UNAVAILABLE, "gone"}, 0);  // the next connection starts with initialize
  CHECK(w.methods() == Texts{R"("initialize")"});
}

TEST_CASE("server/discover is sent again, once, if the server supports its revision after all") {
  const std::string error =
      R"({"code":-32022,"message":"no","data":{"supported":["2026-07-28"],"requested":"2026-07-28"}})";
  Unknown w;
  w.refuse("server/discover", error);
  CHECK(w.methods() == Texts{R"("server/discover")", R"("server/discover")"});
  SECTION("it answers") {
    w.answer("server/discover", discovered);
    CHECK(w.revision == "2026-07-28");
  }
  SECTION("it refuses again") {
    w.refuse("server/discover", error);
    CHECK(w.methods().back() == R"("initialize")");
    CHECK(w.methods().size() == 3);
    w.initialize();
    CHECK(w.revision == "2025-06-18");
  }
  CHECK(w.opened == 1);
}

TEST_CASE("a result without the known revision is a refusal as well") {
  Unknown w;
  w.answer("server/discover", R"({"supportedVersions":["2030-01-01"],"capabilities":{}})");
  REQUIRE(w.methods() == Texts{R"("server/discover")", R"("initialize")"});
  w.refuse("initialize", no_method);
  CHECK(w.lane->state() == LaneState::waiting);
  CHECK(w.lane->reason().find("rejected initialize") != std::string::npos);
}

TEST_CASE("a server that is silent on the probe gets initialize on the same connection") {
  Unknown w;
  w.lane->close();
  w.upstream->remove(w.lane);
  ServerDef def = w.def;
  def.connect_timeout_ms = 20;  // initialize is sent after half of it
  Upstream upstream(w, def);
  upstream.connector = &LaneWorld::connector;
  upstream.self = &w;
  upstream.protocol.decided(stateless_server_edge(), "2026-07-28", bh::unix_s());
  w.sent.clear();
  w.lane = static_cast<WireLane *>(upstream.lane_for(0, 0));
  w.lane->start();
  REQUIRE(wait_for(*w.loop, [&] { return w.sent.size() == 2; }));
  CHECK(w.methods() == Texts{R"("server/discover")", R"("initialize")"});
  const Exchange *second = w.own("initialize");
  REQUIRE(second != nullptr);
  CHECK(second->timeout_ms < 20);  // one time-out for both
  SECTION("initialize is answered first") {
    const std::uint64_t probe = w.own("server/discover")->id;
    w.initialize();
    CHECK(w.abandoned == std::vector<std::uint64_t>{probe});
    CHECK(w.table.get(probe) == nullptr);
    CHECK(w.revision == "2025-06-18");
    CHECK_FALSE(upstream.protocol.first(bh::unix_s()).stateless());
  }
  SECTION("server/discover is answered first") {
    const std::uint64_t other = second->id;
    w.answer("server/discover", discovered);
    CHECK(w.abandoned == std::vector<std::uint64_t>{other});
    CHECK(w.revision == "2026-07-28");
    CHECK(w.notified.empty());
  }
  w.list();
  CHECK(w.lane->state() == LaneState::ready);
  upstream.remove(w.lane);
  w.lane = nullptr;
}

TEST_CASE("over HTTP, initialize waits for half of the connect time-out") {
  struct Kind {
    std::string type, url;
    bool http;
  };
  const Kind kind = GENERATE(Kind{"http", "", true}, Kind{"", "http://127.0.0.1:9/mcp", true},
                             Kind{"http", "http://127.0.0.1:9/mcp", true}, Kind{"stdio", "", false},
                             Kind{"", "", false}, Kind{"example-connector", "", false});
  INFO(kind.type << ' ' << kind.url);
  Unknown w;
  ServerDef def = w.def;
  def.connect_timeout_ms = 4'000;
  def.type = kind.type;
  def.url = kind.url;
  const auto upstream = w.replaced_by(def);
  const std::uint64_t start = bh::monotonic_ms();
  w.lane->start();
  CHECK(w.methods() == Texts{R"("server/discover")"});
  SECTION("silence") {
    REQUIRE(wait_for(*w.loop, [&] { return w.sent.size() == 2; }));
    CHECK(w.methods() == Texts{R"("server/discover")", R"("initialize")"});
    if (kind.http) CHECK(bh::monotonic_ms() - start >= 2'000);
  }
  if (kind.http) {
    SECTION("a late answer decides") {
      w.answer("server/discover", discovered);
      CHECK(w.revision == "2026-07-28");
    }
    SECTION("a late refusal decides") {
      w.refuse("server/discover", no_method);
      CHECK(w.methods() == Texts{R"("server/discover")", R"("initialize")"});
    }
    SECTION("a time-out fails the attempt, and nothing is stored") {
      w.fail("server/discover", {BH_E_TIMEOUT, "no response"});
      CHECK(w.methods() == Texts{R"("server/discover")"});
      CHECK(w.lane->state() == LaneState::waiting);
      CHECK(upstream->protocol.stamped("{}") == "{}");
    }
  }
  w.remove(*upstream);
}

TEST_CASE("a server that ends on the probe is started once more, and gets initialize first") {
  Unknown w;
  w.lane->down({BH_E_UNAVAILABLE, "exited with status 1"}, 0);
  CHECK(w.opened == 2);
  CHECK(w.closed == 1);
  CHECK(w.methods() == Texts{R"("server/discover")", R"("initialize")"});
  CHECK(w.lane->restarts() == 0);
  SECTION("works then") {
    w.initialize();
    w.list();
    CHECK(w.lane->state() == LaneState::ready);
    CHECK_FALSE(w.stateless_next());
  }
  SECTION("ends again: the usual wait follows") {
    w.lane->down({BH_E_UNAVAILABLE, "exited with status 1"}, 0);
    CHECK(w.opened == 2);
    CHECK(w.lane->state() == LaneState::waiting);
    CHECK(w.lane->reason().find("exited with status 1") != std::string::npos);
  }
  SECTION("it was a stateless server after all") {
    w.refuse("initialize", R"({"code":-32022,"message":"unsupported","data":{}})");
    CHECK(w.opened == 2);
    w.answer("server/discover", discovered);
    w.list();
    CHECK(w.lane->state() == LaneState::ready);
    CHECK(w.stateless_next());
  }
}

TEST_CASE("each connection that began with the probe may end on it once") {
  Unknown w;
  ServerDef def = w.def;
  const auto upstream = w.replaced_by(def);
  auto *other = static_cast<WireLane *>(upstream->lane_for(cap::sampling, 0));
  REQUIRE(other != w.lane);
  w.lane->start();
  other->start();
  CHECK(w.methods() == Texts(2, R"("server/discover")"));
  for (WireLane *lane : {w.lane, other}) lane->down({BH_E_UNAVAILABLE, "exited"}, 0);
  CHECK(w.opened == 4);
  CHECK(w.methods() == Texts{R"("server/discover")", R"("server/discover")", R"("initialize")",
                             R"("initialize")"});
  for (const WireLane *lane : {w.lane, other}) CHECK(lane->state() == LaneState::connecting);
  // These connections began with initialize, so the lanes wait before the next attempt.
  for (WireLane *lane : {w.lane, other}) lane->down({BH_E_UNAVAILABLE, "exited"}, 0);
  CHECK(w.opened == 4);
  for (const WireLane *lane : {w.lane, other}) CHECK(lane->state() == LaneState::waiting);
  w.remove(*upstream);
}

TEST_CASE("a child process that hangs on the probe gets initialize first when it starts again") {
  Unknown w;
  ServerDef def = w.def;
  def.connect_timeout_ms = 20;  // initialize is sent after half of it
  const bool process = GENERATE(true, false);
  if (!process) def.type = "example-connector";
  const auto upstream = w.replaced_by(def);
  w.lane->start();
  REQUIRE(wait_for(*w.loop, [&] { return w.sent.size() == 2; }));
  w.fail("server/discover", {BH_E_TIMEOUT, "no response"});
  CHECK(w.lane->state() == LaneState::connecting);
  CHECK(upstream->protocol.first(bh::unix_s()).stateless());
  w.fail("initialize", {BH_E_TIMEOUT, "no response"});
  CHECK(w.lane->state() == LaneState::waiting);
  // A time-out over another connector does not show what the server has received.
  CHECK(upstream->protocol.first(bh::unix_s()).stateless() == !process);
  w.sent.clear();
  w.lane->start();
  CHECK(w.methods() == Texts{process ? R"("initialize")" : R"("server/discover")"});
  w.remove(*upstream);
}

TEST_CASE("an error that only stateless servers send fails the attempt, and nothing is stored") {
  const std::string number = GENERATE("-32020", "-32021");
  Unknown w;
  w.refuse("server/discover", R"({"code":)" + number + R"(,"message":"a header is missing"})");
  CHECK(w.methods() == Texts{R"("server/discover")"});
  CHECK(w.opened == 1);
  CHECK(w.lane->state() == LaneState::waiting);
  CHECK(w.lane->reason().find("a header is missing") != std::string::npos);
  CHECK(w.stateless_next());
  CHECK(w.upstream->protocol.stamped("{}") == "{}");
}

TEST_CASE(
    "a server over HTTP is not opened again because of an error that does not identify the "
    "revision") {
  struct Case {
    std::string error;
    bool reopens;
  };
  const auto [error, reopens] = GENERATE(
      Case{R"({"code":-32603,"message":"busy"})", false},
      Case{R"({"code":-32000,"message":"too many requests"})", false},
      Case{R"({"code":-32020,"message":"header"})", false},
      Case{R"({"code":"-32601","message":"not a number"})", false},
      Case{R"({"message":"no code"})", false}, Case{R"({"code":-32600,"message":"x"})", true},
      Case{R"({"code":-32601,"message":"x"})", true},
      Case{R"({"code":-32602,"message":"x"})", true},
      Case{R"({"code":-32022,"message":"x"})", true});
  INFO(error);
  Unknown w;
  ServerDef def = w.def;
  def.url = "http://127.0.0.1:9/mcp";
  const auto upstream = w.replaced_by(def);
  w.lane->start();
  w.answer("server/discover", discovered);
  w.list();
  w.call();
  w.lane->opening().recheck();
  w.refuse("server/discover", error);
  CHECK(w.opened == (reopens ? 2 : 1));
  CHECK((w.lane->state() == LaneState::ready) == !reopens);
  CHECK(w.failures.size() == (reopens ? 1 : 0));
  w.remove(*upstream);
}

TEST_CASE("over HTTP, a status decides; authentication and time-outs do not") {
  Unknown w;
  SECTION("400, 404, 405") {
    w.fail("server/discover", {BH_E_PROTOCOL, "HTTP 404"});
    w.initialize();
    w.list();
    CHECK_FALSE(w.stateless_next());
  }
  SECTION("500: initialize is tried, and nothing is remembered") {
    w.fail("server/discover", {BH_E_IO, "HTTP 500"});
    w.initialize();
    w.list();
    CHECK(w.lane->state() == LaneState::ready);
    CHECK(w.stateless_next());
  }
  for (const bh_status code : {BH_E_AUTH, BH_E_DENIED, BH_E_UNAVAILABLE, BH_E_TIMEOUT}) {
    DYNAMIC_SECTION("no initialize after " << code) {
      w.fail("server/discover", {code, "not now"});
      CHECK(w.methods() == Texts{R"("server/discover")"});
      CHECK(w.lane->state() == LaneState::waiting);
      CHECK(w.lane->reason().find("not now") != std::string::npos);
      CHECK(w.stateless_next());
    }
  }
}

TEST_CASE("answers to opening requests that have been decided or closed have no effect") {
  Unknown w;
  w.refuse("server/discover", no_method);
  w.initialize();
  w.list();
  const std::size_t sent = w.sent.size();
  w.lane->down({BH_E_UNAVAILABLE, "gone"}, 0);
  CHECK(w.lane->state() == LaneState::connecting);
  CHECK(w.sent.size() == sent + 1);
  w.lane->close();
  CHECK(w.table.size() == 0);
  CHECK(w.loop->held(w.lane).timers == 0);
}

TEST_CASE("a server over HTTP that was replaced by one of sessions is opened again") {
  Unknown w;
  w.lane->close();
  w.upstream->remove(w.lane);
  ServerDef def = w.def;
  def.url = "http://127.0.0.1:9/mcp";
  Upstream upstream(w, def);
  upstream.connector = &LaneWorld::connector;
  upstream.self = &w;
  upstream.protocol.decided(stateless_server_edge(), "2026-07-28", bh::unix_s());
  w.sent.clear();
  w.opened = 0;
  w.lane = static_cast<WireLane *>(upstream.lane_for(0, 0));
  w.lane->start();
  w.answer("server/discover", discovered);
  w.list();
  w.sent.clear();
  w.lane->opening().recheck();
  w.lane->opening().recheck();
  CHECK(w.methods() == Texts{R"("server/discover")"});
  SECTION("it was not") {
    w.answer("server/discover", discovered);
    CHECK(w.opened == 1);
    CHECK(w.lane->state() == LaneState::ready);
  }
  SECTION("it does not answer now") {
    w.fail("server/discover", {BH_E_UNAVAILABLE, "refused"});
    CHECK(w.opened == 1);
  }
  SECTION("it was") {
    w.fail("server/discover", {BH_E_PROTOCOL, "HTTP 400"});
    CHECK(w.opened == 2);
    w.fail("server/discover", {BH_E_PROTOCOL, "HTTP 400"});
    w.initialize();
    w.list();
    CHECK(w.lane->state() == LaneState::ready);
    CHECK(w.revision == "2025-06-18");
    w.sent.clear();
    w.lane->opening().recheck();  // nothing to check
    CHECK(w.sent.empty());
  }
  upstream.remove(w.lane);
  w.lane = nullptr;
}

TEST_CASE("a server over HTTP that was replaced by one without sessions is opened again") {
  const auto denies = [](const std::string &type, const std::string &error) {
    LaneWorld w;
    ServerDef def = w.def;
    def.type = type;
    Upstream upstream(w, def);
    upstream.connector = &LaneWorld::connector;
    upstream.self = &w;
    w.upstream->remove(w.lane);
    w.lane = static_cast<WireLane *>(upstream.lane_for(0, 0));
    w.get_ready();
    const Scanned m(R"({"jsonrpc":"2.0","id":1,"error":)" + error + "}");
    const bool out = w.lane->opening().denies_sessions(m.get());
    if (out) w.lane->reopen();
    CHECK(w.opened == (out ? 2 : 1));
    while (!upstream.lanes().empty()) upstream.remove(upstream.lanes().back().get());
    w.lane = nullptr;
    return out;
  };
  const std::string error =
      R"({"code":-32022,"message":"no","data":{"supported":["2026-07-28"],"requested":"2025-11-25"}})";
  CHECK(denies("http", error));
  CHECK_FALSE(denies("stdio", error));
  CHECK_FALSE(denies("http", R"({"code":-32022,"message":"no"})"));
  CHECK_FALSE(
      denies("http", R"({"code":-32000,"message":"no","data":{"supported":["2026-07-28"]}})"));
}

TEST_CASE("a call with outdated headers is sent again once, after the list of tools") {
  Unknown w;
  w.answer("server/discover", discovered);
  w.list();
  w.sent.clear();
  w.call();
  Exchange *e = w.last->exchange;
  CHECK(w.lane->in_flight == 1);
  REQUIRE(w.lane->renew_headers(*e));
  CHECK(w.lane->in_flight == 1);  // the list
  CHECK(w.methods() == Texts{R"("tools/call")", R"("tools/list")"});
  CHECK(w.again.empty());
  CHECK(w.last->stage == Stage::queued);
  REQUIRE(w.last->parked != nullptr);
  CHECK(w.last->parked->message.get().bytes.find("\"name\":\"s__x\"") != std::string::npos);
  w.list();
  CHECK(w.again == std::vector<std::uint64_t>{w.last->id});
  CHECK(w.lane->exchanges.size == 0);
  // The second time, the list is read again, but the call is not sent again: the client gets the
  // server's error.
  Exchange &second = *w.table.open();
  second.call = w.last;
  second.method = mcp::Method::tools_call;
  w.lane->attach(second);
  CHECK_FALSE(w.lane->renew_headers(second));
  w.list();
  CHECK(w.again.size() == 1);
  w.drop(second);
}

TEST_CASE("a list that is out of date is read again when it is asked for, without polling") {
  constexpr std::uint64_t ms = 1'000'000;
  Unknown w;
  w.answer("server/discover", discovered);
  w.answer("tools/list",
           R"({"tools":[{"name":"x"}],"nextCursor":"2","ttlMs":9000,"cacheScope":"public"})");
  w.answer("tools/list", R"({"tools":[{"name":"y"}],"ttlMs":5000,"cacheScope":"public"})");
  REQUIRE(w.lane->state() == LaneState::ready);
  const std::uint64_t now = w.loop->now_ns();
  const auto hints = [&](std::uint64_t later_ms) {
    const auto out = w.lane->list_hints(ItemKind::tool, now + later_ms * ms);
    REQUIRE(out.has_value());
    return *out;
  };
  CHECK(hints(0).is_public);
  CHECK(hints(0).ttl_ms > 4'000);
  CHECK(hints(0).ttl_ms <= 5'000);
  CHECK(hints(5'001).ttl_ms == 0);
  CHECK_FALSE(w.lane->list_hints(ItemKind::prompt, now).has_value());
  w.sent.clear();
  w.lane->refresh(ItemKind::tool, now + 4'000 * ms);
  w.lane->refresh(ItemKind::prompt, now + 9'000 * ms);
  CHECK(w.sent.empty());
  for (int i = 0; i < 3; ++i) w.lane->refresh(ItemKind::tool, now + 6'000 * ms);
  CHECK(w.methods() == Texts{R"("tools/list")"});
  SECTION("a new list") {
    w.answer("tools/list", R"({"tools":[{"name":"z"}],"ttlMs":7000})");
    CHECK(w.lane->items(ItemKind::tool).items.size() == 1);
    CHECK_FALSE(hints(0).is_public);
    CHECK(hints(0).ttl_ms > 6'000);
  }
  SECTION("a server that fails keeps its list, which stays out of date") {
    w.refuse("tools/list", R"({"code":-32603,"message":"busy"})");
    CHECK(w.lane->state() == LaneState::ready);
    CHECK(w.lane->items(ItemKind::tool).items.size() == 2);
    CHECK(hints(0).ttl_ms == 0);
    CHECK_FALSE(hints(0).is_public);
    w.sent.clear();
    w.lane->refresh(ItemKind::tool, w.loop->now_ns());
    CHECK(w.sent.empty());
    w.lane->refresh(ItemKind::tool, w.loop->now_ns() + ListAge::min_refresh_ms * ms);
    CHECK(w.methods() == Texts{R"("tools/list")"});
  }
}

TEST_CASE("a list whose changes the server reports stays up to date") {
  constexpr std::uint64_t ms = 1'000'000;
  Unknown w;
  w.answer("server/discover",
           R"({"supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true}}})");
  w.answer("tools/list", R"({"tools":[{"name":"x"}],"ttlMs":2000,"cacheScope":"public"})");
  REQUIRE(w.lane->state() == LaneState::ready);
  const std::uint64_t later = w.loop->now_ns() + 60'000 * ms;
  CHECK(w.lane->list_hints(ItemKind::tool, later)->ttl_ms == 0);  // not acknowledged yet
  const Exchange *listen = w.own("subscriptions/listen");
  REQUIRE(listen != nullptr);
  const Scanned acknowledged(
      R"({"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{"toolsListChanged":true},"_meta":{"io.modelcontextprotocol/subscriptionId":)" +
      std::to_string(listen->id) + "}}}");
  w.lane->subscriptions().acknowledged(acknowledged.get());
  CHECK(w.lane->list_hints(ItemKind::tool, later)->ttl_ms == 2'000);
  w.sent.clear();
  w.lane->refresh(ItemKind::tool, later);
  CHECK(w.sent.empty());
}

TEST_CASE("lists of servers with sessions have no hints and are not requested again") {
  LaneWorld w;
  w.get_ready();
  const std::uint64_t later = w.loop->now_ns() + 3'600'000'000'000;
  CHECK(w.lane->list_hints(ItemKind::tool, later)->ttl_ms == 0);
  CHECK_FALSE(w.lane->list_hints(ItemKind::prompt, later).has_value());
  w.lane->refresh(ItemKind::tool, later);
  CHECK(w.sent.empty());
}
