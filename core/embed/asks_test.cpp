// Tests server-initiated requests on one connection: which client receives them, how long they stay
// open, and which calls' time-outs they extend.
#include <catch2/catch.hpp>
#include <string>

#include "embed/fake_world.hpp"

using namespace bulkhead;

namespace {

constexpr const char *able = R"({"elicitation":{}})";
constexpr const char *ask =
    R"({"jsonrpc":"2.0","id":"s1","method":"elicitation/create","params":{"message":"?"}})";

std::string cancelled(const std::string &request) {
  return R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":)" + request +
         "}}";
}

// A client with two in-flight calls to "a". During the first call, the server sends a request.
struct Asked : World {
  std::unique_ptr<Client> client;
  std::string first, second, question;

  void begin() {
    start();
    client = std::make_unique<Client>(*host, able);
    REQUIRE(turn_until([&] { return host->settled(); }));
    client->call("1", "a__x");
    first = FakeUpstreams::id_of(up.last("a"));
    client->call("2", "a__y");
    second = FakeUpstreams::id_of(up.last("a"));
    up.send("a", ask);
    REQUIRE(client->got.size() == 1);
    question = FakeUpstreams::id_of(client->got[0]);
    client->got.clear();
  }
  void finish(const std::string &call) {
    up.send("a", R"({"jsonrpc":"2.0","id":)" + call + R"(,"result":{}})");
  }
  void accept() {
    client->end->send(R"({"jsonrpc":"2.0","id":)" + question + R"(,"result":{"action":"accept"}})");
  }
  bool server_got(const std::string &text) {
    for (const std::string &m : up.lane("a").sent) {
      if (m.find(text) != std::string::npos) return true;
    }
    return false;
  }
};

}  // namespace

TEST_CASE(
    "a server-initiated request stays open until the last call that may have caused it finishes") {
  Asked w;
  w.begin();
  SECTION("another call finishes") {
    w.finish(w.second);
    CHECK(w.client->has(R"("id":2,"result")"));
    CHECK(w.client->got.size() == 1);
    w.accept();
    CHECK(w.up.last("a") == R"({"jsonrpc":"2.0","id":"s1","result":{"action":"accept"}})");
    w.finish(w.first);
    CHECK(w.client->has(R"("id":1,"result")"));
  }
  SECTION("another call is cancelled") {
    w.client->end->send(cancelled("2"));
    CHECK_FALSE(w.server_got(R"("action":"cancel")"));
    w.accept();
    CHECK(w.server_got(R"("action":"accept")"));
  }
  SECTION("a call that was sent later does not keep the request open") {
    w.client->call("3", "a__x");
    w.client->end->send(cancelled("2"));
    CHECK_FALSE(w.server_got(R"("action":"cancel")"));
    w.client->end->send(cancelled("1"));
    CHECK(w.server_got(R"({"jsonrpc":"2.0","id":"s1","result":{"action":"cancel"}})"));
    CHECK(w.client->has(R"("requestId":)" + w.question));
  }
  SECTION("all calls finish") {
    w.finish(w.first);
    CHECK_FALSE(w.client->has("requestId"));
    w.finish(w.second);
    CHECK(w.client->has(R"("requestId":)" + w.question));
    CHECK_FALSE(w.server_got(R"("id":"s1")"));
  }
  CHECK(w.host->status().in_flight <= 1);
}

TEST_CASE("calls that may have caused a request do not time out while the client handles it") {
  Asked w;
  w.profile.servers[0].tool_timeouts_ms = {{"x", 80}, {"y", 80}};
  w.begin();
  w.client->call("3", "a__x");  // this call cannot have caused the request
  REQUIRE(w.turn_until([&] { return w.client->has(R"("id":3,"error")"); }));
  w.turn(200);
  CHECK(w.client->got.size() == 1);
  w.accept();
  REQUIRE(w.turn_until(
      [&] { return w.client->has(R"("id":1,"error")") && w.client->has(R"("id":2,"error")"); }));
}

TEST_CASE("a request that the connector attributes to a call belongs only to that call") {
  Asked w;
  w.begin();
  w.accept();
  w.up.send("a",
            R"({"jsonrpc":"2.0","id":"s2","method":"elicitation/create","params":{"message":"?"}})",
            std::stoull(w.first));
  REQUIRE(w.client->got.size() == 1);
  w.client->end->send(cancelled("1"));
  CHECK(w.server_got(R"({"jsonrpc":"2.0","id":"s2","result":{"action":"cancel"}})"));
}

TEST_CASE("requests caused by cancelled calls never reach another client") {
  World w;
  w.start();
  Client one(*w.host, able), two(*w.host, able);
  REQUIRE(w.turn_until([&] { return w.host->settled(); }));
  for (int i = 0; i < 100; ++i) {
    one.call(std::to_string(i), "a__x");
    one.end->send(cancelled(std::to_string(i)));
  }
  // The server finishes all but the first 30 of the cancelled calls.
  const std::vector<std::string> sent = w.up.lane("a").sent;
  std::vector<std::string> calls;
  for (const std::string &m : sent) {
    if (m.find("tools/call") != std::string::npos) calls.push_back(FakeUpstreams::id_of(m));
  }
  REQUIRE(calls.size() == 100);
  for (std::size_t i = 30; i < calls.size(); ++i) {
    w.up.send("a", R"({"jsonrpc":"2.0","id":)" + calls[i] + R"(,"result":{}})");
  }
  two.call("1", "a__x");
  w.up.send("a", ask);
  CHECK(two.got.empty());
  CHECK(w.up.last("a").find(R"("id":"s1","result":{"action":"cancel"})") != std::string::npos);
  // Once the server has finished all earlier calls, a request from the server goes to the client
  // that sends the next call.
  two.end->send(cancelled("1"));
  w.up.send(
      "a", R"({"jsonrpc":"2.0","id":)" + FakeUpstreams::id_of(w.up.last("a")) + R"(,"result":{}})");
  for (const std::string &m : std::vector<std::string>(w.up.lane("a").sent)) {
    if (m.find("tools/call") == std::string::npos) continue;
    w.up.send("a", R"({"jsonrpc":"2.0","id":)" + FakeUpstreams::id_of(m) + R"(,"result":{}})");
  }
  one.call("101", "a__x");
  w.up.send("a", ask);
  CHECK(one.has("elicitation/create"));
}

TEST_CASE("a client may respond to a server-initiated request that is being cancelled") {
  Asked w;
  w.begin();
  w.finish(w.second);
  w.client->got.clear();
  w.client->on_message = [&] {
    if (w.client->got.back().find("requestId") != std::string::npos) w.accept();
  };
  w.client->end->send(cancelled("1"));
  CHECK(w.client->has(R"("requestId":)" + w.question));
  CHECK(w.server_got(R"({"jsonrpc":"2.0","id":"s1","result":{"action":"cancel"}})"));
  CHECK_FALSE(w.server_got(R"("action":"accept")"));
}
