// Tests hot reload of servers: unchanged servers are not affected, and every call to a removed
// server gets a response.
#include <algorithm>
#include <catch2/catch.hpp>
#include <random>
#include <string>

#include "embed/fake_world.hpp"

using namespace bulkhead;

namespace {

ApplyReport apply(World &w) {
  auto report = w.host->apply(w.profile);
  REQUIRE(report.has_value());
  return *std::move(report);
}

bool drained(World &w) {
  return w.turn_until([&] { return w.host->drained() && w.host->settled(); });
}

std::size_t open_lanes(const World &w, std::string_view server) {
  std::size_t n = 0;
  for (const FakeLane &lane : w.up.lanes) n += lane.open && lane.server == server ? 1 : 0;
  return n;
}

void answer(World &w, std::string_view server, const std::string &id) {
  w.up.send(server, R"({"jsonrpc":"2.0","id":)" + id + R"(,"result":{"of":)" + id + "}}");
}

PluginUse plugin_use(const std::string &id, const std::string &plugin) {
  PluginUse use;
  use.id = id;
  use.plugin = plugin;
  use.config_json = "{}";
  return use;
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("reload: unchanged servers keep their connections and in-flight calls") {
  World w;
  w.start();
  Client c(*w.host);
  c.end->send(list_tools);
  c.call("1", "a__x");
  const std::string id = FakeUpstreams::id_of(w.up.last("a"));
  c.got.clear();
  const std::size_t lanes = w.up.lanes.size();

  w.up.tools["c"] = R"([{"name":"z"}])";
  w.profile.servers = {server("a"), server("c")};
  const ApplyReport report = apply(w);
  CHECK(report.added == Names{"c"});
  CHECK(report.removed == Names{"b"});
  CHECK(report.changed.empty());
  CHECK(report.unchanged == 1);
  REQUIRE(drained(w));
  CHECK(w.up.lanes.size() == lanes + 1);
  CHECK(open_lanes(w, "a") == 1);
  CHECK(open_lanes(w, "b") == 0);
  CHECK(c.has("notifications/tools/list_changed"));
  answer(w, "a", id);
  CHECK(c.has(R"("id":1)"));
  c.got.clear();
  c.end->send(list_tools);
  CHECK(c.has("a__x"));
  CHECK(c.has("c__z"));
  CHECK_FALSE(c.has("b__x"));
  c.got.clear();
  c.call("2", "b__x");
  CHECK(c.has("Tool not found: b__x"));
}

TEST_CASE("reload: an identical profile changes nothing and sends no notification") {
  World w;
  w.start();
  Client c(*w.host);
  c.end->send(list_tools);
  c.got.clear();
  const std::size_t lanes = w.up.lanes.size();
  for (ServerDef &def : w.profile.servers) def.origin.line += 7;
  const ApplyReport report = apply(w);
  CHECK(report.nothing_changed());
  CHECK(report.unchanged == 2);
  CHECK(report.needs_restart.empty());
  w.turn(20);
  CHECK(w.up.lanes.size() == lanes);
  CHECK(c.got.empty());
  // Reordering the servers changes the order of the list but opens no new connections.
  std::swap(w.profile.servers[0], w.profile.servers[1]);
  CHECK(apply(w).nothing_changed());
  w.turn(20);
  CHECK(w.up.lanes.size() == lanes);
  c.got.clear();
  c.end->send(list_tools);
  REQUIRE(c.got.size() == 1);
  CHECK(c.got[0].find("b__x") < c.got[0].find("a__x"));
  c.call("1", "a__x");
  CHECK(w.up.last("a").find("tools/call") != std::string::npos);
}

TEST_CASE("reload: a call to a removed server may finish before the server is closed") {
  World w;
  w.start();
  Client c(*w.host);
  c.call("1", "b__x");
  const std::string id = FakeUpstreams::id_of(w.up.last("b"));
  w.profile.servers = {server("a")};
  apply(w);
  w.turn(30);
  CHECK(open_lanes(w, "b") == 1);
  CHECK_FALSE(w.host->drained());
  CHECK(w.host->status().servers.size() == 1);
  answer(w, "b", id);
  REQUIRE(c.got.size() == 1);
  CHECK(c.got[0] == R"({"jsonrpc":"2.0","id":1,"result":{"of":)" + id + "}}");
  REQUIRE(drained(w));
  CHECK(open_lanes(w, "b") == 0);
}

TEST_CASE("reload: a call that exceeds the drain limit fails and is cancelled upstream") {
  World w;
  w.profile.limits.drain_ms = 30;
  w.start();
  Client c(*w.host);
  c.call("1", "b__x");
  w.profile.servers = {server("a")};
  apply(w);
  REQUIRE(w.turn_until([&] { return !c.got.empty(); }));
  CHECK(c.got[0].find(R"(server \"b\" was removed or changed)") != std::string::npos);
  CHECK(c.got[0].find("may have run") != std::string::npos);
  REQUIRE(drained(w));
  CHECK(w.up.last("b").find("notifications/cancelled") != std::string::npos);
  CHECK(open_lanes(w, "b") == 0);
  CHECK(w.host->status().in_flight == 0);
}

TEST_CASE("reload: a changed server is replaced without interruption") {
  World w;
  w.profile.limits.grace_ms = 2000;
  w.start();
  Client c(*w.host);
  c.end->send(list_tools);
  c.call("1", "a__x");
  const std::string old_id = FakeUpstreams::id_of(w.up.last("a"));
  const bh_lane old_lane = w.up.lane("a").handle;
  c.got.clear();

  w.profile.servers[0].args = {"--new"};
  const ApplyReport report = apply(w);
  CHECK(report.changed == Names{"a"});
  CHECK(report.unchanged == 1);
  CHECK(open_lanes(w, "a") == 2);
  // The list has not changed, so it is available immediately. Calls wait for the new connection.
  c.end->send(list_tools);
  CHECK(c.has("a__x"));
  c.got.clear();
  c.call("2", "a__y");
  CHECK(c.got.empty());
  REQUIRE(w.turn_until([&] { return w.status("a").state == ServerState::ready; }));
  const FakeLane &fresh = w.up.lane("a");
  CHECK(fresh.handle != old_lane);
  CHECK(fresh.sent.back().find(R"("name":"y")") != std::string::npos);
  answer(w, "a", FakeUpstreams::id_of(fresh.sent.back()));
  CHECK(c.has(R"("id":2,"result")"));
  // The response to the earlier call still comes from the old server.
  const FakeLane &old = *std::find_if(w.up.lanes.begin(), w.up.lanes.end(),
                                      [&](const FakeLane &l) { return l.handle == old_lane; });
  CHECK(old.open);
  w.up.send_on(old_lane, R"({"jsonrpc":"2.0","id":)" + old_id + R"(,"result":{}})");
  CHECK(c.has(R"("id":1,"result")"));
  REQUIRE(drained(w));
  CHECK(open_lanes(w, "a") == 1);
  CHECK_FALSE(c.has("list_changed"));  // the tools have not changed
}

TEST_CASE("reload: a changed server that does not start is unlisted after the grace period") {
  World w;
  w.start();
  Client c(*w.host);
  c.end->send(list_tools);
  c.got.clear();
  w.up.refuse_open = true;
  w.profile.servers[0].args = {"--broken"};
  apply(w);
  REQUIRE(w.turn_until([&] { return c.has("list_changed"); }));
  CHECK(w.status("a").state == ServerState::failed);
  c.got.clear();
  c.end->send(list_tools);
  CHECK_FALSE(c.has("a__x"));
  CHECK(c.has("b__x"));
  // A reload can start the server again.
  w.up.refuse_open = false;
  w.profile.servers[0].args = {};
  CHECK(apply(w).changed == Names{"a"});
  REQUIRE(w.turn_until([&] { return w.status("a").state == ServerState::ready; }));
}

TEST_CASE("reload: tool lists and limits change on the existing connection") {
  World w;
  w.start();
  Client c(*w.host);
  c.end->send(list_tools);
  c.got.clear();
  const std::size_t lanes = w.up.lanes.size();
  w.profile.servers[0].deny_tools = {"y"};
  w.profile.servers[0].tool_timeouts_ms["x"] = 60;
  const ApplyReport report = apply(w);
  CHECK(report.adjusted == Names{"a"});
  // A call to a denied tool is rejected immediately and is not sent to the server.
  c.call("1", "a__y");
  REQUIRE(c.got.size() == 1);
  CHECK(c.got[0].find("Tool not found") != std::string::npos);
  REQUIRE(w.turn_until([&] { return c.has("list_changed"); }));
  c.call("2", "a__x");
  REQUIRE(w.turn_until([&] { return c.has("within 60 ms"); }));
  // When the tool is allowed again, it is listed again.
  c.end->send(list_tools);
  c.got.clear();
  w.profile.servers[0].deny_tools.clear();
  apply(w);
  REQUIRE(w.turn_until([&] { return c.has("list_changed"); }));
  c.end->send(list_tools);
  CHECK(c.has("a__y"));
  CHECK(w.up.lanes.size() == lanes);
}

TEST_CASE("reload: a newly denied tool cannot be called while its changed server is reconnecting") {
  World w;
  w.profile.limits.grace_ms = 5000;
  w.up.answer_initialize = true;
  w.start();
  Client c(*w.host);
  w.up.answer_initialize = false;  // the new connection stays pending
  w.profile.servers[0].args = {"--new"};
  w.profile.servers[0].deny_tools = {"y"};
  apply(w);
  c.call("1", "a__y");
  REQUIRE(c.got.size() == 1);
  CHECK(c.got[0].find("still connecting") != std::string::npos);
  c.call("2", "a__x");
  CHECK(c.got.size() == 1);  // the call is pending
}

TEST_CASE(
    "reload: clients that shared a server get separate connections if it becomes per-client") {
  World w;
  w.start();
  Client one(*w.host), two(*w.host);
  one.end->send(list_tools);
  two.end->send(list_tools);
  one.got.clear();
  two.got.clear();
  one.call("1", "a__x");
  const std::string id = FakeUpstreams::id_of(w.up.last("a"));
  w.profile.servers[1].session = SessionScope::per_client;
  CHECK(apply(w).changed == Names{"b"});
  REQUIRE(drained(w));
  CHECK(open_lanes(w, "a") == 1);
  CHECK(open_lanes(w, "b") == 3);  // one for listing, and one for each client
  answer(w, "a", id);
  CHECK(one.has(R"("id":1,"result")"));
  one.call("2", "b__x");
  two.call("2", "b__x");
  std::size_t calls = 0;
  for (const FakeLane &lane : w.up.lanes) {
    const std::string all = lane.sent.empty() ? "" : lane.sent.back();
    if (lane.server == "b" && all.find("tools/call") != std::string::npos) ++calls;
  }
  CHECK(calls == 2);
  // When the server becomes shared again, new clients share one connection.
  w.profile.servers[1].session = SessionScope::shared;
  w.profile.limits.drain_ms = 20;
  apply(w);
  REQUIRE(drained(w));
  CHECK(open_lanes(w, "b") == 1);
  Client three(*w.host);
  CHECK(open_lanes(w, "b") == 1);
}

TEST_CASE("reload: subscriptions move to a changed server and are dropped with a removed server") {
  World w;
  w.up.capabilities["a"] = w.up.capabilities["b"] =
      R"({"tools":{},"resources":{"subscribe":true}})";
  w.start();
  Client c(*w.host);
  for (const char *server_name : {"a", "b"}) {
    c.end->send(
        R"({"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"bulkhead://)" +
        std::string(server_name) + R"(/file:///x"}})");
    answer(w, server_name, FakeUpstreams::id_of(w.up.last(server_name)));
  }
  c.got.clear();
  w.profile.servers = {server("a")};
  w.profile.servers[0].args = {"--new"};
  apply(w);
  REQUIRE(drained(w));
  REQUIRE(w.status("a").state == ServerState::ready);
  CHECK(w.up.last("a").find(R"("method":"resources/subscribe","params":{"uri":"file:///x"})") !=
        std::string::npos);
  w.up.send("a", R"({"jsonrpc":"2.0","method":"notifications/resources/updated",)"
                 R"("params":{"uri":"file:///x"}})");
  CHECK(c.has("bulkhead://a/file:///x"));
  c.end.reset();  // sends unsubscribe only to servers that still exist
  CHECK(w.up.last("a").find("resources/unsubscribe") != std::string::npos);
}

TEST_CASE("reload: a pending request of a removed server is cancelled") {
  World w;
  w.profile.limits.drain_ms = 20;
  w.start();
  Client c(*w.host, R"({"elicitation":{}})");
  REQUIRE(w.turn_until([&] { return w.host->settled(); }));
  c.call("1", "a__x");
  w.up.send("a", R"({"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{}})");
  REQUIRE(c.has("elicitation/create"));
  w.profile.servers = {server("b")};
  apply(w);
  REQUIRE(drained(w));
  CHECK(c.has("notifications/cancelled"));
  CHECK(c.has(R"("id":1,"error")"));
  CHECK(w.host->status().in_flight == 0);
}

TEST_CASE("reload: a removed server whose connection was lost is not reconnected") {
  World w;
  w.profile.limits.retry_min_ms = 5;
  w.start();
  Client c(*w.host);
  w.up.refuse_open = true;
  w.up.fall("b", "gone");
  w.profile.servers = {server("a")};
  apply(w);
  w.up.refuse_open = false;
  const std::size_t lanes = w.up.lanes.size();
  w.turn(60);
  CHECK(w.up.lanes.size() == lanes);
  CHECK(w.host->drained());
  // If the connection is lost while the server is draining, calls to the server fail.
  c.call("1", "a__x");
  w.profile.servers = {server("b")};
  apply(w);
  w.up.fall("a", "killed");
  REQUIRE(c.got.size() == 1);
  CHECK(c.got[0].find("killed") != std::string::npos);
  REQUIRE(drained(w));
  CHECK(open_lanes(w, "a") == 0);
}

TEST_CASE("reload: names change, and settings that require a restart are reported") {
  World w;
  w.start();
  Client c(*w.host);
  c.end->send(list_tools);
  c.got.clear();
  w.profile.naming.separator = ".";
  w.profile.limits.message_bytes = 1u << 20;
  w.profile.limits.call_timeout_ms = 60;
  w.profile.connectors["fake"] = "another";
  w.profile.transports.push_back(plugin_use("t", "transport-http"));
  const ApplyReport report = apply(w);
  CHECK(report.nothing_changed());
  CHECK(report.needs_restart == Names{"transports.t: needs a restart",
                                      "connectors.fake: needs a restart",
                                      "limits.message_bytes: needs a restart"});
  REQUIRE(w.turn_until([&] { return c.has("list_changed"); }));
  c.got.clear();
  c.call("1", "a.x");
  REQUIRE(w.turn_until([&] { return c.has("within 60 ms"); }));
}

TEST_CASE("reload: a client's first list waits for servers that the reload added") {
  World w;
  w.profile.servers.clear();
  w.profile.limits.first_list_wait_ms = 2000;
  w.start();
  Client c(*w.host);
  w.profile.servers = {server("a"), server("b")};
  apply(w);
  c.end->send(list_tools);
  CHECK(c.got.empty());
  REQUIRE(w.turn_until([&] { return !c.got.empty(); }));
  CHECK(c.has("a__x"));
  CHECK(c.has("b__x"));
}

TEST_CASE(
    "reload: a request that waits for a server's first list resumes when the server is removed") {
  World w;
  w.profile.limits.first_list_wait_ms = 60'000;
  w.start();
  Client c(*w.host);
  w.up.hold_tools = true;
  w.profile.servers.push_back(server("late"));
  apply(w);
  c.call("1", "late__x");
  w.turn(20);
  CHECK(c.got.empty());
  w.profile.servers.pop_back();
  apply(w);
  CHECK(c.has("Tool not found: late__x"));
}

TEST_CASE("reload: a required tools plugin that does not load leaves the profile unchanged") {
  World w;
  w.start();
  const std::size_t lanes = w.up.lanes.size();
  w.profile.servers = {server("c")};
  w.profile.tools.push_back(plugin_use("t", "no-such-plugin"));
  const auto report = w.host->apply(w.profile);
  REQUIRE_FALSE(report.has_value());
  CHECK(report.error().text.find("no-such-plugin") != std::string::npos);
  CHECK(w.host->status().servers.size() == 2);
  CHECK(w.up.lanes.size() == lanes);
  CHECK(w.status("a").state == ServerState::ready);
}

TEST_CASE("reload: a server can be removed before any server was started") {
  World w;
  HostOptions options;
  options.eager = false;
  options.static_plugins = {{"fake-connector", bh_static_entry_FakeConnector}};
  w.host = *Host::create(w.profile, std::move(options));
  REQUIRE(w.host->start().has_value());
  w.profile.servers.pop_back();
  CHECK(apply(w).removed == Names{"b"});
  CHECK(w.up.lanes.empty());
  Client c(*w.host);
  REQUIRE(w.turn_until([&] { return w.host->settled(); }));
  CHECK(w.up.lanes.size() == 1);
}

TEST_CASE("reload: under load, every call gets exactly one response") {
  World w;
  w.profile.limits.drain_ms = 10;
  w.profile.limits.retry_min_ms = 1;
  for (const char *name : {"a", "b", "c", "d"}) w.up.tools[name] = R"([{"name":"x"}])";
  w.start();
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < 4; ++i) clients.push_back(std::make_unique<Client>(*w.host));
  std::minstd_rand random{7};
  const auto pick = [&](std::size_t n) { return random() % n; };
  std::size_t calls = 0;
  for (int round = 0; round < 300; ++round) {
    w.profile.servers.clear();
    for (const char *name : {"a", "b", "c", "d"}) {
      if (pick(4) == 0) continue;
      ServerDef def = server(name);
      if (pick(3) == 0) def.args = {std::to_string(pick(3))};
      if (pick(8) == 0) def.session = SessionScope::per_client;
      if (pick(5) == 0) def.max_in_flight = 1;
      w.profile.servers.push_back(def);
    }
    apply(w);
    for (auto &client : clients) {
      const char *names[] = {"a__x", "b__x", "c__x", "d__x"};
      client->call(std::to_string(++calls), names[pick(4)]);
    }
    for (std::size_t i = 0; i < w.up.lanes.size(); ++i) {
      const FakeLane &lane = w.up.lanes[i];
      if (!lane.open || pick(2) == 0) continue;
      if (pick(10) == 0) {
        const bh_error error = bh_error{sizeof(bh_error), BH_E_IO, 0, 0, {}};
        w.up.lane_down(lane.handle, error);
      } else if (lane.sent.back().find("tools/call") != std::string::npos) {
        w.up.send_on(lane.handle, R"({"jsonrpc":"2.0","id":)" +
                                      FakeUpstreams::id_of(lane.sent.back()) + R"(,"result":{}})");
      }
    }
    w.turn(pick(3));
  }
  // Removes all servers. In-flight calls fail when the drain time limit expires.
  w.profile.servers.clear();
  apply(w);
  REQUIRE(drained(w));
  std::size_t answers = 0;
  for (auto &client : clients) {
    std::sort(client->got.begin(), client->got.end());
    for (const std::string &m : client->got) answers += m.find(R"("id":)") != std::string::npos;
    const auto id = [](const std::string &m) { return FakeUpstreams::id_of(m); };
    for (std::size_t i = 1; i < client->got.size(); ++i) {
      if (!id(client->got[i]).empty()) CHECK(id(client->got[i]) != id(client->got[i - 1]));
    }
  }
  CHECK(answers == calls);
  CHECK(w.host->status().in_flight == 0);
  for (const FakeLane &lane : w.up.lanes) CHECK_FALSE(lane.open);
}

TEST_CASE("reload: the first list of a server remains the approved definition") {
  for (const bool kept : {false, true}) {
    INFO(kept);
    World w;
    w.profile.pins.mode = PinRules::Mode::enforce;
    std::size_t news = 0;
    HostOptions options;
    options.static_plugins = {{"fake-connector", bh_static_entry_FakeConnector}};
    if (kept) options.on_pins = [&](const std::vector<PinNews> &some) { news += some.size(); };
    auto created = Host::create(w.profile, std::move(options));
    REQUIRE(created.has_value());
    w.host = std::move(*created);
    REQUIRE(w.host->start().has_value());
    REQUIRE(w.turn_until([&] { return w.host->settled(); }));
    Client c(*w.host);
    c.end->send(list_tools);
    REQUIRE(c.has("a__x"));
    w.up.tools["a"] = R"([{"name":"x","description":"other"},{"name":"y"}])";
    w.up.send("a", R"({"jsonrpc":"2.0","method":"notifications/tools/list_changed"})");
    REQUIRE(w.turn_until([&] { return c.has("list_changed"); }));
    // The first iteration runs before a reload, the second one after a reload that changes a limit.
    for (int i = 0; i < 2; ++i) {
      c.got.clear();
      c.end->send(list_tools);
      CHECK_FALSE(c.has("a__x"));
      CHECK(c.has("a__y"));
      c.call("1", "a__x");
      CHECK(c.has("tool-pin"));
      w.profile.servers[0].tool_timeouts_ms["x"] = 60;
      apply(w);
    }
    CHECK(news == (kept ? 4 : 0));
  }
}
