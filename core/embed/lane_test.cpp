// Tests lanes behind a connector: their queues and their delayed start.
#include <algorithm>
#include <catch2/catch.hpp>
#include <string>

#include "embed/fake_world.hpp"

using namespace bulkhead;

namespace {

std::string argument(std::size_t bytes) {
  return R"(,"arguments":{"x":")" + std::string(bytes, 'x') + "\"}";
}

void answer_last(World &w, std::string_view server) {
  const std::string id = FakeUpstreams::id_of(w.up.last(server));
  w.up.send(server, R"({"jsonrpc":"2.0","id":)" + id + R"(,"result":{}})");
}

std::size_t count(const FakeLane &lane, std::string_view text) {
  return static_cast<std::size_t>(std::count_if(
      lane.sent.begin(), lane.sent.end(),
      [&](const std::string &message) { return message.find(text) != std::string::npos; }));
}

std::size_t lanes_of(const World &w, std::string_view server) {
  return static_cast<std::size_t>(
      std::count_if(w.up.lanes.begin(), w.up.lanes.end(),
                    [&](const FakeLane &lane) { return lane.server == server; }));
}

}  // namespace

TEST_CASE("queued calls are limited in bytes, but an empty queue accepts any call") {
  World w;
  w.profile.servers[0].max_in_flight = 1;
  w.profile.limits.write_queue_bytes = 1000;
  w.start();
  Client c(*w.host);
  c.call("1", "a__x");
  c.call("2", "a__x", argument(5000));
  CHECK(c.got.empty());
  c.call("3", "a__x");
  REQUIRE(c.got.size() == 1);
  CHECK(c.has("-32000"));
  CHECK(c.has("limits.write_queue_bytes"));
  CHECK(c.has(R"(\"a\" is busy: 1 calls of 5)"));
  c.got.clear();

  // Once queued calls are sent or cancelled, the queue has room for others.
  answer_last(w, "a");
  CHECK(w.up.last("a").size() > 5000);
  c.got.clear();
  c.call("4", "a__x", argument(600));
  c.call("5", "a__x", argument(600));
  CHECK(c.has(R"("id":5)"));
  c.got.clear();
  c.end->send(R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":4}})");
  c.call("6", "a__x", argument(600));
  CHECK(c.got.empty());
  answer_last(w, "a");
  answer_last(w, "a");
  CHECK(c.has(R"("id":2)"));
  CHECK(c.has(R"("id":6)"));
  CHECK(w.host->status().in_flight == 0);
}

TEST_CASE("a removed server that becomes ready late does not reconnect") {
  World w;
  w.profile.servers = {server("a")};
  w.start();
  Client c(*w.host);
  c.end->send(list_tools);
  REQUIRE(c.has("a__x"));
  w.up.answer_initialize = false;
  w.profile.servers[0].pool_size = 3;
  REQUIRE(w.host->apply(w.profile).has_value());
  REQUIRE(lanes_of(w, "a") == 2);
  c.call("1", "a__x");  // queued
  w.profile.servers = {};
  REQUIRE(w.host->apply(w.profile).has_value());
  const std::string id = FakeUpstreams::id_of(w.up.lane("a").sent.at(0));
  w.up.send("a", R"({"jsonrpc":"2.0","id":)" + id +
                     R"(,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}}}})");
  REQUIRE(w.turn_until([&] { return count(w.up.lane("a"), "tools/call") == 1; }));
  CHECK(lanes_of(w, "a") == 2);
}
