// Tests the router end to end in one process. The test simulates the clients and the servers.
#include "host.hpp"

#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <vector>

#include "embed/fake_connector.hpp"
#include "embed/fake_world.hpp"

using namespace bulkhead;

TEST_CASE(
    "a call reaches its server with the original tool name and a gateway ID; the response has the "
    "client's ID") {
  World w;
  w.start();
  Client c(*w.host);
  c.call("\"abc\"", "a__x", R"(,"arguments":{"n":1e400,"n":-0.0})");
  const std::string sent = w.up.last("a");
  const std::string id = FakeUpstreams::id_of(sent);
  CHECK(sent ==
        R"({"jsonrpc":"2.0","id":)" + id +
            R"(,"method":"tools/call","params":{"name":"x","arguments":{"n":1e400,"n":-0.0}}})");
  w.up.send("a", R"({"jsonrpc":"2.0","result":{"z":[1.0]},"id":)" + id + "}");
  REQUIRE(c.got.size() == 1);
  CHECK(c.got[0] == R"({"jsonrpc":"2.0","result":{"z":[1.0]},"id":"abc"})");
  CHECK(w.host->status().in_flight == 0);
}

TEST_CASE("an upstream's error is forwarded with unchanged code, message and data") {
  World w;
  w.start();
  Client c(*w.host);
  c.call("5", "b__x");
  w.up.send("b", R"({"jsonrpc":"2.0","id":)" + FakeUpstreams::id_of(w.up.last("b")) +
                     R"(,"error":{"code":-32099,"message":"m","data":{"k":[null]}}})");
  REQUIRE(c.got.size() == 1);
  CHECK(c.got[0] ==
        R"({"jsonrpc":"2.0","id":5,"error":{"code":-32099,"message":"m","data":{"k":[null]}}})");
}

TEST_CASE("calls of unknown tools, unprefixed tools and unavailable servers fail") {
  World w;
  w.up.tools.erase("b");
  w.start();
  Client c(*w.host);
  c.call("1", "a__nosuch");
  c.call("2", "x");
  c.call("3", "b__x");
  REQUIRE(c.got.size() == 3);
  CHECK(c.got[0].find(R"("code":-32601,"message":"Tool not found: a__nosuch")") !=
        std::string::npos);
  CHECK(c.got[1].find(R"("code":-32602)") != std::string::npos);
  CHECK(c.got[2].find(R"(server \"b\" is not available)") != std::string::npos);
  CHECK(w.status("b").state == ServerState::failed);
  CHECK(w.status("b").reason.find("no list") != std::string::npos);
}

TEST_CASE("a server whose list request failed is retried and is announced once available") {
  World w;
  w.up.tools.erase("b");
  w.start();
  Client c(*w.host);
  c.end->send(list_tools);
  REQUIRE(c.has("a__x"));
  CHECK_FALSE(c.has("b__x"));
  const std::size_t lanes = w.up.lanes.size();
  w.up.tools["b"] = R"([{"name":"x"}])";
  REQUIRE(w.turn_until([&] { return c.has("notifications/tools/list_changed"); }));
  // The server keeps its connection. With a new process, its state would have been lost.
  CHECK(w.up.lanes.size() == lanes);
  c.got.clear();
  c.end->send(list_tools);
  CHECK(c.has("b__x"));
}

TEST_CASE("calls in flight on a lost connection fail immediately and are not retried") {
  World w;
  w.start();
  Client c(*w.host);
  c.call("1", "a__x");
  const std::size_t lanes = w.up.lanes.size();
  w.up.fall("a", "killed by the test");
  REQUIRE(c.got.size() == 1);
  CHECK(c.got[0].find(R"(server \"a\": killed by the test)") != std::string::npos);
  REQUIRE(w.turn_until([&] { return w.status("a").state == ServerState::ready; }));
  CHECK(w.up.lanes.size() == lanes + 1);
  for (const std::string &m : w.up.lane("a").sent) CHECK(m.find("tools/call") == std::string::npos);
  CHECK(w.status("a").restarts == 1);
  // The connection is restored within the grace period, so no client receives a notification.
  w.turn(60);
  CHECK_FALSE(c.has("list_changed"));
}

TEST_CASE("a client that calls again inside a failure callback opens only one new connection") {
  const bool lazy = GENERATE(false, true);
  World w;
  w.profile.servers[0].lazy = lazy;
  w.start();
  Client c(*w.host);
  c.end->send(list_tools);
  REQUIRE(w.turn_until([&] { return c.has("a__x"); }));
  c.call("1", "a__x");
  const auto called = [&] { return w.up.last("a").find("tools/call") != std::string::npos; };
  REQUIRE(w.turn_until(called));
  const std::size_t lanes = w.up.lanes.size();
  bool again = false;
  c.on_message = [&] {
    if (!again && c.has("killed by the test")) {
      again = true;
      c.call("2", "a__x");
    }
  };
  w.up.fall("a", "killed by the test");
  CHECK(again);
  CHECK(w.up.lanes.size() == lanes + 1);
  REQUIRE(w.turn_until(called));
  w.up.send(
      "a", R"({"jsonrpc":"2.0","id":)" + FakeUpstreams::id_of(w.up.last("a")) + R"(,"result":{}})");
  CHECK(c.has(R"("id":2,"result")"));
  CHECK(w.up.lanes.size() == lanes + 1);
  CHECK(w.status("a").state == ServerState::ready);
}

TEST_CASE("a server that exits at each call fails the calls, with a limited number of restarts") {
  const bool lazy = GENERATE(false, true);
  World w;
  w.profile.servers[0].lazy = lazy;
  w.profile.limits.retry_min_ms = 60'000;
  w.profile.limits.retry_max_ms = 60'000;
  w.start();
  Client c(*w.host);
  c.end->send(list_tools);
  REQUIRE(w.turn_until([&] { return c.has("a__x"); }));
  std::size_t answers = 0;
  c.on_message = [&] { answers += c.got.back().find("\"id\":7") != std::string::npos ? 1 : 0; };
  std::size_t calls = 0;
  for (; calls < 5; ++calls) {
    const std::size_t before = answers;
    c.call("7" + std::to_string(calls), "a__x");
    REQUIRE(w.turn_until([&] {
      if (answers != before) return true;
      if (w.up.last("a").find("tools/call") != std::string::npos) w.up.fall("a", "killed");
      return answers != before;
    }));
  }
  CHECK(answers == calls);
  CHECK(w.status("a").state == ServerState::failed);
  std::size_t opened = 0;
  for (const FakeLane &lane : w.up.lanes) opened += lane.server == "a" ? 1 : 0;
  CHECK(opened == 3);
}

TEST_CASE("an unavailable server is unlisted after the grace period, with one notification") {
  World w;
  w.start();
  Client c(*w.host);
  c.end->send(list_tools);
  c.got.clear();
  w.up.refuse_open = true;
  w.up.fall("a", "gone");
  c.end->send(list_tools);
  CHECK(c.has("a__x"));
  c.got.clear();
  REQUIRE(w.turn_until([&] { return c.has("list_changed"); }));
  CHECK(c.got.size() == 1);
  c.got.clear();
  c.end->send(list_tools);
  CHECK_FALSE(c.has("a__x"));
  CHECK(c.has("b__x"));
}

TEST_CASE(
    "a cancelled call is cancelled upstream with the upstream ID, and its response is dropped") {
  World w;
  w.start();
  Client c(*w.host);
  c.call("7", "a__x");
  const std::string id = FakeUpstreams::id_of(w.up.last("a"));
  c.end->send(
      R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7,"reason":"no"}})");
  CHECK(w.up.last("a") ==
        R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":)" + id +
            R"(,"reason":"no"}})");
  CHECK(w.up.lane("a").abandoned.size() == 1);
  w.up.send("a", R"({"jsonrpc":"2.0","id":)" + id + R"(,"result":{}})");
  CHECK(c.got.empty());
}

TEST_CASE("a call that times out is cancelled, and its error names the server") {
  World w;
  w.profile.servers[0].tool_timeouts_ms["x"] = 60;
  w.start();
  Client c(*w.host);
  c.call("1", "a__x");
  c.call("2", "a__y");
  REQUIRE(w.turn_until([&] { return !c.got.empty(); }));
  CHECK(c.got[0].find(R"("code":-32000)") != std::string::npos);
  CHECK(c.got[0].find(R"(server \"a\" did not respond to tools/call \"x\" within 60 ms)") !=
        std::string::npos);
  CHECK(w.up.last("a").find("notifications/cancelled") != std::string::npos);
  CHECK(c.got.size() == 1);
}

TEST_CASE("progress carries the token of the client that sent the call") {
  World w;
  w.start();
  Client one(*w.host), two(*w.host);
  one.call("1", "a__x", R"(,"_meta":{"progressToken":"t"})");
  const std::string first = FakeUpstreams::id_of(w.up.last("a"));
  CHECK(w.up.last("a").find(R"("progressToken":)" + first) != std::string::npos);
  two.call("1", "a__x", R"(,"_meta":{"progressToken":"t"})");
  w.up.send("a",
            R"({"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":)" +
                first + R"(,"progress":0.5}})");
  REQUIRE(one.got.size() == 1);
  CHECK(
      one.got[0] ==
      R"({"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"t","progress":0.5}})");
  CHECK(two.got.empty());
}

TEST_CASE("a server-initiated request reaches only the client whose call caused it") {
  World w;
  w.start();
  const std::string caps = R"({"elicitation":{},"sampling":{}})";
  Client one(*w.host, caps), two(*w.host, caps);
  REQUIRE(w.turn_until([&] { return w.host->settled(); }));
  const std::string ask =
      R"({"jsonrpc":"2.0","id":"s1","method":"elicitation/create","params":{"message":"?"}})";

  w.up.send("a", ask);  // no client has sent a call
  CHECK(w.up.last("a").find(R"("id":"s1","result":{"action":"cancel"})") != std::string::npos);

  one.call("1", "a__x");
  const std::string call = FakeUpstreams::id_of(w.up.last("a"));
  w.up.send("a", ask);
  REQUIRE(one.got.size() == 1);
  CHECK(two.got.empty());
  const std::string id = FakeUpstreams::id_of(one.got[0]);
  CHECK(id != "\"s1\"");
  two.end->send(R"({"jsonrpc":"2.0","id":)" + id + R"(,"result":{"action":"accept"}})");
  // This client did not receive the request, so its response is ignored.
  CHECK(w.up.last("a").find("accept") == std::string::npos);
  one.end->send(R"({"jsonrpc":"2.0","id":)" + id + R"(,"result":{"action":"accept"}})");
  CHECK(w.up.last("a") == R"({"jsonrpc":"2.0","id":"s1","result":{"action":"accept"}})");

  two.call("1", "a__x");  // a call of either client may have caused the next request
  w.up.send("a", ask);
  CHECK(w.up.last("a").find(R"("action":"cancel")") != std::string::npos);
  w.up.send("a", ask, std::stoull(call));  // the connector attributes the request to a call
  CHECK(one.got.size() == 2);
  CHECK(two.got.empty());
}

TEST_CASE(
    "clients with different capabilities get separate lanes; without capabilities, no request is "
    "forwarded") {
  World w;
  w.start();
  const std::size_t lanes = w.up.lanes.size();
  Client plain(*w.host);
  CHECK(w.up.lanes.size() == lanes);
  plain.call("1", "a__x");
  w.up.send("a", R"({"jsonrpc":"2.0","id":1,"method":"sampling/createMessage","params":{}})");
  CHECK(plain.got.empty());
  CHECK(w.up.last("a").find("-32601") != std::string::npos);
  Client able(*w.host, R"({"sampling":{},"roots":{}})");
  CHECK(w.up.lanes.size() == lanes + 2);
  // A shared lane does not declare roots, because its clients may have different roots.
  CHECK(w.up.lane("a").sent[0].find(R"("capabilities":{"sampling":{}})") != std::string::npos);
}

TEST_CASE("a per-client server has one lane per session, which is closed with the session") {
  World w;
  w.profile.servers[1].session = SessionScope::per_client;
  w.start();
  auto one = std::make_unique<Client>(*w.host, R"({"roots":{"listChanged":true}})");
  REQUIRE(w.turn_until([&] { return w.host->settled(); }));
  CHECK(w.up.lane("b").sent[0].find(R"("roots":{"listChanged":true})") != std::string::npos);
  w.up.send("b", R"({"jsonrpc":"2.0","id":4,"method":"roots/list"})");
  CHECK(one->has("roots/list"));
  one->end->send(R"({"jsonrpc":"2.0","method":"notifications/roots/list_changed"})");
  CHECK(w.up.last("b").find("roots/list_changed") != std::string::npos);
  const bh_lane handle = w.up.lane("b").handle;
  one.reset();
  for (const FakeLane &lane : w.up.lanes) {
    if (lane.handle == handle && lane.server == "b") CHECK_FALSE(lane.open);
  }
}

TEST_CASE(
    "with static roots, a client with its own lane receives no roots/list, and its root changes "
    "are dropped") {
  World w;
  w.profile.servers[1].session = SessionScope::per_client;
  w.profile.servers[1].roots = RootsMode::static_list;
  w.profile.servers[1].root_folders = {"/srv"};
  w.start();
  Client one(*w.host, R"({"roots":{"listChanged":true}})");
  REQUIRE(w.turn_until([&] { return w.host->settled(); }));
  CHECK(w.up.lane("b").sent[0].find(R"("roots":{"listChanged":true})") != std::string::npos);
  w.up.send("b", R"({"jsonrpc":"2.0","id":4,"method":"roots/list"})");
  const std::string answer =
      R"({"jsonrpc":"2.0","id":4,"result":{"roots":[{"uri":"file:///srv","name":"srv"}]}})";
  CHECK(w.up.last("b") == answer);
  CHECK_FALSE(one.has("roots/list"));
  one.end->send(R"({"jsonrpc":"2.0","method":"notifications/roots/list_changed"})");
  CHECK(w.up.last("b") == answer);
}

TEST_CASE("unused shared lanes stay open for a while for the next client") {
  World w;
  w.profile.servers[1].session = SessionScope::per_client;
  w.profile.limits.idle_view_ms = 40;
  w.start();
  auto first = std::make_unique<Client>(*w.host, R"({"sampling":{}})");
  const bh_lane shared = w.up.lane("a").handle;
  const std::size_t lanes = w.up.lanes.size();
  first.reset();
  auto second = std::make_unique<Client>(*w.host, R"({"sampling":{}})");
  CHECK(w.up.lane("a").handle == shared);
  CHECK(w.up.lanes.size() == lanes + 1);  // only a per-client lane was added
  w.turn(100);
  CHECK(w.up.lane("a").open);
  second.reset();
  REQUIRE(w.turn_until([&] { return !w.up.lane("a").open; }));
}

TEST_CASE("subscriptions are counted: only the first and the last one reach the upstream") {
  World w;
  w.up.capabilities["a"] = R"({"tools":{},"resources":{"subscribe":true}})";
  w.start();
  Client one(*w.host), two(*w.host);
  const auto message = [](const char *method) {
    return R"({"jsonrpc":"2.0","id":1,"method":"resources/)" + std::string(method) +
           R"(","params":{"uri":"bulkhead://a/m://1"}})";
  };
  const auto count = [&](const char *what) {
    int n = 0;
    for (const std::string &m : w.up.lane("a").sent) n += m.find(what) != std::string::npos;
    return n;
  };
  one.end->send(message("subscribe"));
  CHECK(w.up.last("a").find(R"("uri":"m://1")") != std::string::npos);
  w.up.send(
      "a", R"({"jsonrpc":"2.0","id":)" + FakeUpstreams::id_of(w.up.last("a")) + R"(,"result":{}})");
  two.end->send(message("subscribe"));
  CHECK(count("resources/subscribe") == 1);
  one.got.clear();
  two.got.clear();
  w.up.send(
      "a",
      R"({"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"m://1"}})");
  CHECK(one.has(R"("uri":"bulkhead://a/m://1")"));
  CHECK(two.has(R"("uri":"bulkhead://a/m://1")"));
  one.end->send(message("unsubscribe"));
  CHECK(count("resources/unsubscribe") == 0);
  two.end.reset();
  CHECK(count("resources/unsubscribe") == 1);
}

TEST_CASE("calls above the limit of a server are queued") {
  World w;
  w.profile.servers[0].max_in_flight = 2;
  w.start();
  Client c(*w.host);
  const std::size_t before = w.up.lane("a").sent.size();
  for (int i = 0; i < 5; ++i) c.call(std::to_string(i), "a__x");
  CHECK(w.up.lane("a").sent.size() == before + 2);
  for (std::size_t i = 0; i < 5; ++i) {
    w.up.send("a", R"({"jsonrpc":"2.0","id":)" +
                       FakeUpstreams::id_of(w.up.lane("a").sent[before + i]) + R"(,"result":{}})");
  }
  CHECK(c.got.size() == 5);
}

TEST_CASE("an ambiguous message is rejected before its name is resolved") {
  World w;
  w.start();
  Client c(*w.host);
  const std::size_t before = w.up.lane("a").sent.size();
  c.call("1", "a__x", R"(,"Name":"a__y")");
  c.call("2", "a__x", R"(,"name":"a__y")");
  CHECK(w.up.lane("a").sent.size() == before);
  REQUIRE(c.got.size() == 2);
  CHECK(c.got[0].find(R"("id":1,"error":{"code":-32600)") != std::string::npos);
  CHECK(c.got[1].find(R"("id":2,"error":{"code":-32600)") != std::string::npos);
}

TEST_CASE("the response to a batch is one array in 2025-03-26; other revisions reject batches") {
  World w;
  w.start();
  const std::string batch =
      R"([{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","method":"notifications/initialized"},)"
      R"({"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"a__x"}},{"jsonrpc":"1.0","id":3,"method":"ping"}])";
  Client c(*w.host, "{}", "2025-03-26");
  c.end->send(batch);
  CHECK(c.got.empty());
  w.up.send(
      "a", R"({"jsonrpc":"2.0","id":)" + FakeUpstreams::id_of(w.up.last("a")) + R"(,"result":{}})");
  REQUIRE(c.got.size() == 1);
  CHECK(c.got[0].front() == '[');
  CHECK(c.has(R"({"jsonrpc":"2.0","id":1,"result":{}})"));
  CHECK(c.has(R"({"jsonrpc":"2.0","id":2,"result":{}})"));
  CHECK(c.has(R"("id":3,"error":{"code":-32600)"));
  Client newer(*w.host);
  newer.end->send(batch);
  CHECK(newer.has("-32600"));
}

TEST_CASE("forged, foreign and expired cursors are rejected") {
  World w;
  w.profile.limits.page_items = 1;
  w.start();
  Client c(*w.host);
  c.end->send(list_tools);
  REQUIRE(c.got.size() == 1);
  const std::size_t at = c.got[0].find("\"nextCursor\":\"");
  REQUIRE(at != std::string::npos);
  const std::string cursor = c.got[0].substr(at + 14, 24);
  const auto with = [](const std::string &method, const std::string &text) {
    return R"({"jsonrpc":"2.0","id":1,"method":")" + method + R"(","params":{"cursor":")" + text +
           R"("}})";
  };
  c.got.clear();
  c.end->send(with("tools/list", cursor));
  CHECK(c.has("a__y"));
  for (const std::string &bad :
       {std::string(""), std::string("zzz"), "0" + cursor, "00000002" + cursor.substr(8)}) {
    c.got.clear();
    c.end->send(with("tools/list", bad));
    CHECK(c.has("-32602"));
  }
  c.got.clear();
  c.end->send(with("prompts/list", cursor));
  CHECK(c.has("-32602"));
  w.up.tools["a"] = R"([{"name":"new"}])";
  w.up.send("a", R"({"jsonrpc":"2.0","method":"notifications/tools/list_changed"})");
  REQUIRE(w.turn_until([&] { return c.has("list_changed"); }));
  c.got.clear();
  c.end->send(with("tools/list", cursor));
  CHECK(c.has("-32602"));
}

TEST_CASE("a disabled feature is neither declared nor available") {
  World w;
  w.profile.expose.resources = w.profile.expose.prompts = w.profile.expose.logging = false;
  w.profile.expose.completions = w.profile.expose.list_changed = false;
  w.start();
  std::vector<std::string> got;
  auto end = w.host->connect([&](std::string_view m) { got.emplace_back(m); });
  end->send(
      R"({"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2024-11-05","capabilities":{},"clientInfo":{"name":"t","version":"1"}}})");
  CHECK(got[0].find(R"("capabilities":{"tools":{}})") != std::string::npos);
  end->send(R"({"jsonrpc":"2.0","id":2,"method":"resources/list"})");
  CHECK(got[1].find("-32601") != std::string::npos);
}

TEST_CASE("an invalid server message fails its call, and the server stays connected") {
  World w;
  w.start();
  Client c(*w.host);
  c.call("1", "a__x");
  w.up.send("a", R"({"jsonrpc":"2.0","id":)" + FakeUpstreams::id_of(w.up.last("a")) +
                     ",\"result\":{\"t\":\"\xff\"}}");
  REQUIRE(c.got.size() == 1);
  CHECK(c.got[0].find(R"(server \"a\" sent an invalid message)") != std::string::npos);
  CHECK(w.status("a").state == ServerState::ready);
  w.up.send("a", "garbage");
  w.up.send("a", R"({"jsonrpc":"2.0","id":12345,"result":{}})");
  CHECK(w.status("a").state == ServerState::ready);
}

TEST_CASE("a client that disconnects during its calls leaves no state") {
  World w;
  w.start();
  auto c = std::make_unique<Client>(*w.host, R"({"elicitation":{}})");
  REQUIRE(w.turn_until([&] { return w.host->settled(); }));
  c->call("1", "a__x");
  w.up.send("a", R"({"jsonrpc":"2.0","id":"s","method":"elicitation/create","params":{}})");
  REQUIRE(c->got.size() == 1);
  c->end.reset();
  CHECK(w.host->status().in_flight == 0);
  CHECK(w.host->status().sessions == 0);
  bool cancelled = false, answered = false;
  for (const std::string &m : w.up.lane("a").sent) {
    cancelled |= m.find("notifications/cancelled") != std::string::npos;
    answered |= m.find(R"("id":"s")") != std::string::npos;
  }
  CHECK(cancelled);
  CHECK(answered);
}

TEST_CASE("only initialize and ping are accepted before initialization") {
  World w;
  w.start();
  std::vector<std::string> got;
  auto end = w.host->connect([&](std::string_view m) { got.emplace_back(m); });
  end->send(list_tools);
  CHECK(got.back().find("-32600") != std::string::npos);
  end->send(R"({"jsonrpc":"2.0","id":1,"method":"ping"})");
  CHECK(got.back() == R"({"jsonrpc":"2.0","id":1,"result":{}})");
  end->send(
      R"({"jsonrpc":"2.0","id":2,"method":"prompts/list","params":{"_meta":{"other/protocolVersion":"2026-07-28"}}})");
  CHECK(got.back().find("-32600") != std::string::npos);
  end->send("{oops");
  CHECK(got.back().find("-32700") != std::string::npos);
  CHECK(got.back().find("\"id\"") == std::string::npos);
}

TEST_CASE("a request that belongs to a finished call reaches no other client") {
  World w;
  w.start();
  const std::string caps = R"({"elicitation":{}})";
  Client one(*w.host, caps), two(*w.host, caps);
  REQUIRE(w.turn_until([&] { return w.host->settled(); }));
  const std::string ask =
      R"({"jsonrpc":"2.0","id":"s","method":"elicitation/create","params":{"message":"?"}})";
  one.call("1", "a__x");
  const std::string first = FakeUpstreams::id_of(w.up.last("a"));
  two.call("1", "a__x");
  SECTION("the connector attributes the request to the call") {
    w.up.send("a", R"({"jsonrpc":"2.0","id":)" + first + R"(,"result":{}})");
    w.up.send("a", ask, std::stoull(first));
  }
  SECTION("the call was cancelled, but the server may still be processing it") {
    one.end->send(
        R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}})");
    w.up.send("a", ask);
  }
  CHECK(two.got.empty());
  CHECK(w.up.last("a").find(R"("id":"s","result":{"action":"cancel"})") != std::string::npos);
  // Once the server has finished the first call, the server's requests can only belong to the other
  // client.
  w.up.send("a", R"({"jsonrpc":"2.0","id":)" + first + R"(,"result":{}})");
  w.up.send("a", ask);
  CHECK(two.has("elicitation/create"));
}

TEST_CASE("a server-initiated request is cancelled if its call finishes first") {
  World w;
  w.start();
  Client c(*w.host, R"({"elicitation":{}})");
  REQUIRE(w.turn_until([&] { return w.host->settled(); }));
  c.call("1", "a__x");
  const std::string call = FakeUpstreams::id_of(w.up.last("a"));
  w.up.send("a", R"({"jsonrpc":"2.0","id":"s","method":"elicitation/create","params":{}})");
  const std::string ask = FakeUpstreams::id_of(c.got.at(0));
  w.up.send("a", R"({"jsonrpc":"2.0","id":)" + call + R"(,"result":{}})");
  REQUIRE(c.got.size() == 3);
  CHECK(c.got[1].find(R"("requestId":)" + ask) != std::string::npos);
  CHECK(c.got[2].find(R"("id":1,"result")") != std::string::npos);
}

TEST_CASE("a list change during the first listing does not make a server ready prematurely") {
  World w;
  w.up.capabilities["a"] = R"({"tools":{},"resources":{},"prompts":{}})";
  w.up.hold_tools = true;
  w.profile.limits.first_list_wait_ms = 5000;
  HostOptions options;
  options.static_plugins = {{"fake-connector", bh_static_entry_FakeConnector}};
  auto created = Host::create(w.profile, std::move(options));
  REQUIRE(created.has_value());
  w.host = std::move(*created);
  REQUIRE(w.host->start().has_value());
  const auto held = [&](std::string_view server) {
    for (const std::string &m : w.up.lane(server).sent) {
      if (m.find("\"tools/list\"") != std::string::npos) return FakeUpstreams::id_of(m);
    }
    return std::string();
  };
  REQUIRE(w.turn_until([&] { return !held("a").empty() && !held("b").empty(); }));
  for (int i = 0; i < 3; ++i) {
    w.up.send("a", R"({"jsonrpc":"2.0","method":"notifications/resources/list_changed"})");
    w.up.send("a", R"({"jsonrpc":"2.0","method":"notifications/prompts/list_changed"})");
    w.turn(5);
  }
  CHECK(w.status("a").state == ServerState::connecting);
  for (const char *server : {"a", "b"}) {
    w.up.send(server, R"({"jsonrpc":"2.0","id":)" + held(server) + R"(,"result":{"tools":)" +
                          w.up.tools[server] + "}}");
  }
  REQUIRE(w.turn_until([&] { return w.status("a").state == ServerState::ready; }));
  CHECK(w.status("a").tools == 2);
}

TEST_CASE(
    "requests that wait for servers are dropped when they are cancelled or their client "
    "disconnects") {
  World w;
  w.up.hold_tools = true;
  w.profile.limits.first_list_wait_ms = 5000;
  HostOptions options;
  options.static_plugins = {{"fake-connector", bh_static_entry_FakeConnector}};
  auto created = Host::create(w.profile, std::move(options));
  REQUIRE(created.has_value());
  w.host = std::move(*created);
  REQUIRE(w.host->start().has_value());
  Client c(*w.host);
  c.call("1", "a__x");
  c.call("2", "a__y");
  c.end->send(R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}})");
  auto gone = std::make_unique<Client>(*w.host);
  gone->call("1", "a__x");
  gone.reset();
  REQUIRE(w.turn_until([&] { return w.up.lane("b").sent.size() >= 3; }));
  for (const char *server : {"a", "b"}) {
    for (const std::string &m : std::vector<std::string>(w.up.lane(server).sent)) {
      if (m.find("\"tools/list\"") == std::string::npos) continue;
      w.up.send(server, R"({"jsonrpc":"2.0","id":)" + FakeUpstreams::id_of(m) +
                            R"(,"result":{"tools":)" + w.up.tools[server] + "}}");
    }
  }
  int calls = 0;
  for (const std::string &m : w.up.lane("a").sent) {
    calls += m.find("tools/call") != std::string::npos ? 1 : 0;
  }
  CHECK(calls == 1);
  CHECK(w.up.last("a").find(R"("name":"y")") != std::string::npos);
}

TEST_CASE("a server that ignores cursors is listed only once") {
  World w;
  w.up.cursor["a"] = "";
  w.start();
  CHECK(w.status("a").state == ServerState::ready);
  CHECK(w.status("a").tools == 2);
}
