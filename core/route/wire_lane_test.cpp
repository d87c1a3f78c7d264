// Tests the lane of a server behind a connector, without a Router: opening, queueing and connection
// loss.
#include "route/wire_lane.hpp"

#include <catch2/catch.hpp>

#include "route/lane_world.hpp"

using namespace bulkhead;

namespace {

using World = LaneWorld;

}  // namespace

TEST_CASE("a lane is ready when its handshake and lists are complete") {
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

TEST_CASE("if a server cannot be opened or fails the handshake, the lane retries later") {
  World w;
  SECTION("cannot be opened") {
    w.opens = BH_E_UNAVAILABLE;
    w.lane->start();
    CHECK(w.lane->reason().find("there is no such program") != std::string::npos);
    CHECK(w.wires.empty());
  }
  SECTION("unknown protocol revision") {
    w.lane->start();
    w.answer("initialize", R"({"protocolVersion":"1999-01-01","capabilities":{}})");
    CHECK(w.closed == 1);
  }
  CHECK(w.lane->state() == LaneState::waiting);
  CHECK(w.lane->settled());
  CHECK_FALSE(w.lane->listed());
  CHECK(w.loop->held(w.lane).timers == 1);
}

TEST_CASE(
    "a call is sent with the server's name and the gateway's id, and is otherwise unchanged") {
  World w;
  w.get_ready();
  const std::string id = w.call(R"({ "a" : 1.0 })");
  REQUIRE_FALSE(id.empty());
  CHECK(w.sent[0] ==
        R"({"jsonrpc":"2.0","id":)" + id +
            R"(,"method":"tools/call","params":{"name":"x","arguments":{ "a" : 1.0 }}})");
  w.finish(*w.last);
}

TEST_CASE(
    "calls beyond the server's limit wait in order, and calls beyond the queue limit are refused") {
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
  w.may_send = false;  // as if the rules had changed: the pipeline submits the call again
  w.finish(*second);
  CHECK(w.sent.size() == 2);
  w.finish(*third);
}

TEST_CASE("one large call may always wait, but not a second one") {
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

TEST_CASE("a lost connection fails the calls that were sent, and is opened again") {
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
  CHECK(w.lane->listed());                          // its tools stay listed for some time
  CHECK(w.call().empty());                          // calls are queued
  CHECK(w.failures.size() == 1);
  w.initialize();
  w.answer("tools/list", R"({"tools":[]})");
  CHECK(mcp::member(w.sent.back(), "method") == "\"tools/call\"");
}

TEST_CASE("a connector may report a lost connection while a message is being sent") {
  World w;
  w.get_ready();
  w.inside = [&] { w.lane->down({BH_E_UNAVAILABLE, "gone"}, 0); };
  w.call();
  CHECK(w.failures.size() == 1);
  CHECK(w.lane->in_flight == 1);  // only the handshake of the new connection
}

TEST_CASE("a message that the connector rejects fails its call immediately") {
  World w;
  w.get_ready();
  w.sends = BH_E_LIMIT;
  w.call();
  REQUIRE(w.failures.size() == 1);
  CHECK(w.failures[0].error_code == code::timeout);
  CHECK(w.lane->in_flight == 0);
}

TEST_CASE("a draining lane is not reconnected") {
  World w;
  w.get_ready();
  w.lane->drain();
  w.lane->down({BH_E_UNAVAILABLE, "gone"}, 0);
  CHECK(w.lane->state() == LaneState::waiting);
  w.call();
  CHECK(w.failures.size() == 1);
}

TEST_CASE("a server is notified of a cancelled call only if the call has been sent") {
  World w(1);
  w.get_ready();
  w.notified.clear();
  const std::string id = w.call();
  w.call();
  const std::uint64_t waiting = w.last->exchange->id;
  w.lane->retract(waiting, false, {});
  CHECK(w.notified.empty());
  w.lane->retract(std::strtoull(id.c_str(), nullptr, 10), true, {});
  REQUIRE(w.notified.size() == 1);
  CHECK(mcp::member(mcp::member(w.notified[0], "params"), "requestId") == id);
  CHECK(w.abandoned.size() == 1);
}

TEST_CASE("a server is notified of changed root folders only") {
  World w;
  ServerDef def = w.def;
  def.roots = RootsMode::static_list;
  def.root_folders = {"/a"};
  w.upstream->redefine(def);
  CHECK(w.notified.empty());  // the lane is not connected
  w.lane->start();
  def.root_folders = {"/b"};
  w.upstream->redefine(def);
  CHECK(w.notified.empty());  // the handshake is not complete
  w.initialize();
  w.notified.clear();
  def.root_folders = {"/c"};
  w.upstream->redefine(def);
  CHECK(w.notified == Texts{R"({"jsonrpc":"2.0","method":"notifications/roots/list_changed"})"});
  def.timeout_ms = 5;
  w.upstream->redefine(def);
  CHECK(w.notified.size() == 1);
}

TEST_CASE("list and read requests are marked as repeatable; calls are not") {
  World w;
  w.get_ready();
  CHECK(w.repeatable == Texts{R"("tools/list")"});
  w.finish((w.call(), *w.last));
  w.finish((w.call("{}", "prompts/get"), *w.last));
  w.finish((w.call("{}", "resources/read"), *w.last));
  w.finish((w.call("{}", "resources/subscribe"), *w.last));
  w.finish((w.call("{}", "completion/complete"), *w.last));
  CHECK(w.sent.size() == 5);
  CHECK(w.repeatable == Texts{R"("tools/list")", R"("prompts/get")", R"("resources/read")",
                              R"("completion/complete")"});
}
