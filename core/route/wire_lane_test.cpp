// A lane over a connector, without the rest of the route: opening, queueing, connection loss.
#include "route/wire_lane.hpp"

#include <catch2/catch.hpp>

#include "route/fakes.hpp"

using namespace bulkhead;

namespace {

using Texts = std::vector<std::string>;

struct World : FakeLaneHost {
  bh_status opens = BH_OK, sends = BH_OK;
  Texts sent;        // requests
  Texts repeatable;  // methods that were sent with BH_LANE_REPEATABLE
  Texts notified;
  std::vector<std::uint64_t> abandoned;
  std::uint32_t closed = 0;
  std::function<void()> inside;  // called inside the next send
  CallTable calls;
  ServerDef def = server_named("s");
  std::unique_ptr<Upstream> upstream;
  WireLane *lane = nullptr;

  static World &of(void *self) { return *static_cast<World *>(self); }
  static const bh_connector connector;

  explicit World(std::uint32_t max_in_flight = 8) {
    def.max_in_flight = max_in_flight;
    upstream = std::make_unique<Upstream>(*this, def);
    upstream->connector = &connector;
    upstream->self = this;
    lane = static_cast<WireLane *>(upstream->lane_for(0, 0));
  }
  ~World() override { upstream->remove(lane); }
  // The answer to the lane's own request with this method.
  void answer(const std::string &method, const std::string &result) {
    for (const std::string &request : Texts(sent)) {
      if (mcp::member(request, "method") != "\"" + method + "\"") continue;
      const std::string_view id = mcp::member(request, "id");
      Exchange *e = table.get(std::strtoull(std::string(id).c_str(), nullptr, 10));
      if (e == nullptr) continue;
      const Scanned m(R"({"jsonrpc":"2.0","id":)" + std::string(id) + R"(,"result":)" + result +
                      "}");
      return lane->own_answer(*e, &m.scan, m.text, nullptr);
    }
    FAIL("no such request: " << method);
  }
  void initialize() {
    answer("initialize", R"({"protocolVersion":"2025-06-18","capabilities":{"tools":{}}})");
  }
  void get_ready() {
    lane->start();
    initialize();
    answer("tools/list", R"({"tools":[{"name":"x"}]})");
    REQUIRE(lane->state() == LaneState::ready);
    sent.clear();
  }
  // Makes a call. Returns the id under which it was sent, or an empty string.
  std::string call(const std::string &arguments = "{}", const std::string &method = "tools/call") {
    const std::size_t before = sent.size();
    const Scanned m(R"({"jsonrpc":"2.0","id":"c","method":")" + method +
                    R"(","params":{"name":"s__x","arguments":)" + arguments + "}}");
    last = calls.open();
    Exchange &e = *table.open();
    e.call = last;
    e.method = mcp::Method::tools_call;
    last->exchange = &e;
    last->stage = Stage::at_server;
    lane->attach(e);
    CallInHand hand{m.get(), {lane, {}, m.scan.name}, {}, {}};
    hand.target.resolved.original_token = "\"x\"";
    lane->submit(e, hand);
    return sent.size() == before ? "" : std::string(mcp::member(sent.back(), "id"));
  }
  void finish(Call &call) {
    if (call.exchange != nullptr) drop(*std::exchange(call.exchange, nullptr));
    calls.close(call);
    lane->pump();
  }
  Call *last = nullptr;
};

const bh_connector World::connector{
    sizeof(bh_connector),
    0,
    [](void *self, bh_lane, const bh_lane_info *, void **wire, bh_error *error) -> bh_status {
      *wire = self;
      World &w = World::of(self);
      return w.opens == BH_OK ? BH_OK : bh::fail(error, w.opens, "there is no such program");
    },
    [](void *self, void *, const bh_lane_message *m, bh_error *error) -> bh_status {
      World &w = World::of(self);
      if (w.sends != BH_OK) return bh::fail(error, w.sends, "the pipe is full");
      if ((m->flags & BH_LANE_REPEATABLE) != 0)
        w.repeatable.emplace_back(mcp::member(joined(m->parts, m->part_count), "method"));
      (m->kind == BH_LANE_REQUEST ? w.sent : w.notified).push_back(joined(m->parts, m->part_count));
      call_once(w.inside);
      return BH_OK;
    },
    [](void *, void *, bh_str) {},
    [](void *self, void *, std::uint64_t e) { World::of(self).abandoned.push_back(e); },
    [](void *self, void *) { ++World::of(self).closed; },
};

}  // namespace

TEST_CASE("a lane is ready when handshake and lists are done") {
  World w;
  w.lane->start();
  CHECK(w.lane->state() == LaneState::connecting);
  w.initialize();
  CHECK(w.notified.size() == 1);
  CHECK(w.lane->state() == LaneState::connecting);
  w.answer("tools/list", R"({"tools":[{"name":"x"}],"nextCursor":"2"})");
  w.sent.erase(w.sent.begin(), w.sent.end() - 1);
  w.answer("tools/list", R"({"tools":[{"name":"y"}]})");
  CHECK(w.lane->state() == LaneState::ready);
  CHECK(w.lane->items(ItemKind::tool).items.size() == 2);
  CHECK(w.count("ready") == 1);
}

TEST_CASE("a server that does not open, or refuses the handshake, is tried again later") {
  World w;
  SECTION("does not open") {
    w.opens = BH_E_UNAVAILABLE;
    w.lane->start();
    CHECK(w.lane->reason().find("there is no such program") != std::string::npos);
    CHECK(w.wires.empty());
  }
  SECTION("another protocol") {
    w.lane->start();
    w.answer("initialize", R"({"protocolVersion":"1999-01-01","capabilities":{}})");
    CHECK(w.closed == 1);
  }
  CHECK(w.lane->state() == LaneState::waiting);
  CHECK(w.lane->settled());
  CHECK_FALSE(w.lane->listed());
  CHECK(w.loop->held(w.lane).timers == 1);
}

TEST_CASE("a call leaves with the server's name and the gateway's id, byte for byte otherwise") {
  World w;
  w.get_ready();
  const std::string id = w.call(R"({ "a" : 1.0 })");
  REQUIRE_FALSE(id.empty());
  CHECK(w.sent[0] ==
        R"({"jsonrpc":"2.0","id":)" + id +
            R"(,"method":"tools/call","params":{"name":"x","arguments":{ "a" : 1.0 }}})");
  w.finish(*w.last);
}

TEST_CASE("calls beyond the server's bound wait in order, and beyond the queue's are refused") {
  World w(1);
  w.own_limits.queued_per_server = 2;
  w.get_ready();
  REQUIRE_FALSE(w.call().empty());
  Call *first = w.last;
  CHECK(w.call("1").empty());
  Call *second = w.last;
  CHECK(second->stage == Stage::queued);
  CHECK(w.call("2").empty());
  Call *third = w.last;
  CHECK(w.call("3").empty());
  REQUIRE(w.failures.size() == 1);
  CHECK(w.failures[0].text.find("limits.queued_per_server") != std::string::npos);
  w.finish(*first);
  CHECK(w.sent.size() == 2);
  CHECK(second->stage == Stage::at_server);
  CHECK(second->parked == nullptr);
  w.may_send = false;  // the rules have changed: the pipeline submits the call again
  w.finish(*second);
  CHECK(w.sent.size() == 2);
  w.finish(*third);
}

TEST_CASE("one large call may always wait, the next not") {
  World w(1);
  w.own_limits.write_queue_bytes = 10;
  w.get_ready();
  w.call();
  w.call("[1,2,3,4,5,6,7,8,9]");
  CHECK(w.failures.empty());
  w.call();
  REQUIRE(w.failures.size() == 1);
  CHECK(w.failures[0].text.find("limits.write_queue_bytes") != std::string::npos);
}

TEST_CASE("a lost connection fails what was sent, and is made again") {
  World w;
  w.get_ready();
  w.call();
  const std::uint64_t sent = w.last->id;
  w.lane->down({BH_E_UNAVAILABLE, "it has crashed"}, 0);
  REQUIRE(w.failures.size() == 1);
  CHECK(w.failures[0].call == sent);
  CHECK(w.failures[0].text == "server \"s\": it has crashed");
  CHECK(w.count("lost") == 1);
  CHECK(w.closed == 1);
  CHECK(w.lane->state() == LaneState::connecting);  // the first retry is immediate
  CHECK(w.lane->listed());                          // its tools stay listed for a while
  CHECK(w.call().empty());                          // and calls are queued
  CHECK(w.failures.size() == 1);
  w.initialize();
  w.answer("tools/list", R"({"tools":[]})");
  CHECK(mcp::member(w.sent.back(), "method") == "\"tools/call\"");
}

TEST_CASE("a connector that loses the connection inside of sending") {
  World w;
  w.get_ready();
  w.inside = [&] { w.lane->down({BH_E_UNAVAILABLE, "gone"}, 0); };
  w.call();
  CHECK(w.failures.size() == 1);
  CHECK(w.lane->in_flight == 1);  // for the new handshake
}

TEST_CASE("a message that the connector does not take fails its call at once") {
  World w;
  w.get_ready();
  w.sends = BH_E_LIMIT;
  w.call();
  REQUIRE(w.failures.size() == 1);
  CHECK(w.failures[0].error_code == code::timeout);
  CHECK(w.lane->in_flight == 0);
}

TEST_CASE("a draining lane is not made again") {
  World w;
  w.get_ready();
  w.lane->drain();
  w.lane->down({BH_E_UNAVAILABLE, "gone"}, 0);
  CHECK(w.lane->state() == LaneState::waiting);
  w.call();
  CHECK(w.failures.size() == 1);
}

TEST_CASE("a server is notified of a cancelled call that it has, not of one that waits") {
  World w(1);
  w.get_ready();
  w.notified.clear();
  const std::string id = w.call();
  w.call();
  const std::uint64_t waiting = w.last->exchange->id;
  w.lane->retract(waiting, false, {}, nullptr);
  CHECK(w.notified.empty());
  w.lane->retract(std::strtoull(id.c_str(), nullptr, 10), true, {}, nullptr);
  REQUIRE(w.notified.size() == 1);
  CHECK(mcp::member(mcp::member(w.notified[0], "params"), "requestId") == id);
  CHECK(w.abandoned.size() == 1);
}

TEST_CASE("a server is notified of other root folders, not of the same ones") {
  World w;
  ServerDef def = w.def;
  def.roots = RootsMode::static_list;
  def.root_folders = {"/a"};
  w.upstream->redefine(def);
  CHECK(w.notified.empty());  // not connected
  w.lane->start();
  def.root_folders = {"/b"};
  w.upstream->redefine(def);
  CHECK(w.notified.empty());  // no handshake yet
  w.initialize();
  w.notified.clear();
  def.root_folders = {"/c"};
  w.upstream->redefine(def);
  CHECK(w.notified == Texts{R"({"jsonrpc":"2.0","method":"notifications/roots/list_changed"})"});
  def.timeout_ms = 5;
  w.upstream->redefine(def);
  CHECK(w.notified.size() == 1);
}

TEST_CASE("lists and reads may be repeated by the connector; handshakes and calls may not") {
  World w;
  w.get_ready();
  CHECK(w.repeatable == Texts{R"("tools/list")"});
  w.finish((w.call(), *w.last));
  w.finish((w.call("{}", "prompts/get"), *w.last));
  w.finish((w.call("{}", "resources/subscribe"), *w.last));
  w.finish((w.call("{}", "completion/complete"), *w.last));
  CHECK(w.sent.size() == 4);
  CHECK(w.repeatable == Texts{R"("tools/list")", R"("prompts/get")", R"("completion/complete")"});
}
