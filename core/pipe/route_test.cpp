#include "pipe/route.hpp"

#include <catch2/catch.hpp>

#include <chrono>
#include <thread>
#include <vector>

#include "mcp/scan.hpp"

using namespace bulkhead;
using pipe::Route;
using pipe::RouteLimits;

namespace {

struct Sent {
  std::uint32_t kind;
  std::uint64_t exchange;
  std::string text;
};

struct FakeEnds final : pipe::Ends {
  void to_client(std::string_view message) override { printed.emplace_back(message); }
  Result<void> open_lane(bh_lane lane) override {
    opened.push_back(lane);
    if (refuse_open) return fail(BH_E_UNAVAILABLE, "no listener");
    return {};
  }
  Result<void> send(std::uint32_t kind, std::uint64_t exchange, std::string_view text) override {
    if (send_status != BH_OK) return fail(send_status, send_error);
    sent.push_back({kind, exchange, std::string(text)});
    return {};
  }
  void finish_lane() override { ++finishes; }
  void close_lane() override { ++closes; }
  void hold_lane(bool hold) override { lane_held = hold; }
  void hold_client(bool hold) override { client_held = hold; }
  void log(std::int32_t, std::string_view text) override { logged.emplace_back(text); }
  void done(std::string_view why) override {
    ++dones;
    failure = why;
  }

  std::vector<std::string> printed, logged;
  std::vector<bh_lane> opened;
  std::vector<Sent> sent;
  bool refuse_open = false;
  bh_status send_status = BH_OK;
  std::string send_error, failure;
  int finishes = 0, closes = 0, dones = 0;
  bool lane_held = false, client_held = false;
};

RouteLimits quick() {
  RouteLimits limits;
  limits.first_retry_ms = 1;
  limits.max_retry_ms = 2;
  limits.start_ms = 20;
  limits.linger_ms = 10;
  return limits;
}

// Returns limits for tests that wait until outage_wait_ms has passed. Tests that reconnect earlier
// use the default, because a loaded machine may stop a process for longer than this.
RouteLimits short_outage() {
  RouteLimits limits = quick();
  limits.outage_wait_ms = 20;
  return limits;
}

struct World {
  explicit World(RouteLimits limits = quick()) : route(*reactor, ends, "endpoint", limits) {
    route.start();
  }
  bh_lane lane() const { return ends.opened.back(); }
  void connect() { route.connected(lane()); }
  // Runs the event loop until the condition is true. If that never happens, the test times out.
  template <class F>
  void until(F holds) {
    while (!holds()) reactor->poll(5);
  }
  void lose() {
    opened_before = ends.opened.size();
    route.lane_down(lane(), {BH_E_IO, "connection closed"});
  }
  void reconnect() {
    until([&] { return ends.opened.size() > opened_before; });
    connect();
  }

  std::unique_ptr<Reactor> reactor = std::move(*Reactor::create());
  FakeEnds ends;
  Route route;
  // number of lanes that were opened before the connection was last lost
  std::size_t opened_before = 0;
};

std::string request(int id, const char *method) {
  return R"({"jsonrpc":"2.0","id":)" + std::to_string(id) + R"(,"method":")" + method + R"("})";
}

std::string error_of(const std::string &text) {
  return std::string(mcp::member(mcp::member(text, "error"), "message"));
}

}  // namespace

TEST_CASE("responses match their requests, and notifications expect no response") {
  World w;
  w.connect();
  CHECK(w.route.from_client(request(1, "tools/call")));
  CHECK_FALSE(w.route.from_client(R"({"method":"notifications/x"})"));
  w.route.message(w.lane(), 0, request(9, "ping"));
  CHECK_FALSE(w.route.from_client(R"({"id":9,"result":{}})"));
  CHECK(w.route.from_client("{oops"));
  REQUIRE(w.ends.sent.size() == 4);
  CHECK(w.ends.sent[0].kind == BH_LANE_REQUEST);
  CHECK(w.ends.sent[1].kind == BH_LANE_NOTIFICATION);
  CHECK(w.ends.sent[2].kind == BH_LANE_RESPONSE);
  CHECK(w.ends.sent[3].kind == BH_LANE_REQUEST);
  w.route.message(w.lane(), w.ends.sent[3].exchange, "second\n");
  w.route.message(w.lane(), w.ends.sent[0].exchange, "first");
  w.route.message(w.lane(), 0, "pushed");
  CHECK(w.ends.printed ==
        std::vector<std::string>{request(9, "ping"), "second", "first", "pushed"});
}

TEST_CASE("requests made before the connection is open are sent in order once it is open") {
  World w;
  w.route.from_client(request(1, "initialize"));
  w.route.from_client(R"({"method":"notifications/initialized"})");
  CHECK(w.ends.sent.empty());
  w.connect();
  REQUIRE(w.ends.sent.size() == 2);
  CHECK(w.ends.sent[0].kind == BH_LANE_REQUEST);
  CHECK(w.ends.sent[1].kind == BH_LANE_NOTIFICATION);
}

TEST_CASE("when a connection is lost, each pending request is answered once and not repeated") {
  World w;
  w.connect();
  w.route.from_client(request(1, "tools/call"));
  w.route.from_client(request(2, "tools/list"));
  w.route.from_client("{oops");
  w.lose();
  REQUIRE(w.ends.printed.size() == 3);
  CHECK(mcp::member(w.ends.printed[0], "id") == "1");
  CHECK(error_of(w.ends.printed[0]) ==
        "\"tools/call: connection closed; the request may have run\"");
  CHECK(error_of(w.ends.printed[1]) ==
        "\"tools/list: connection closed; the request may have run\"");
  CHECK(mcp::member(w.ends.printed[2], "id") == "null");
  w.ends.sent.clear();
  w.reconnect();
  CHECK(w.ends.sent.empty());
  CHECK(w.ends.closes == 1);
}

TEST_CASE("requests are queued in a short outage and answered immediately in a long outage") {
  const bool is_long = GENERATE(false, true);
  World w(is_long ? short_outage() : quick());
  w.connect();
  w.lose();
  w.route.from_client(request(1, "tools/call"));
  CHECK(w.ends.printed.empty());
  if (!is_long) {
    w.reconnect();
    REQUIRE(w.ends.sent.size() == 1);
    CHECK(w.ends.printed.empty());
  } else {
    w.until([&] { return !w.ends.printed.empty(); });
    CHECK(error_of(w.ends.printed[0]).find("no connection") != std::string::npos);
    w.route.from_client(request(2, "tools/list"));
    REQUIRE(w.ends.printed.size() == 2);
    w.reconnect();
    CHECK(w.ends.sent.empty());
    w.route.from_client(request(3, "ping"));
    CHECK(w.ends.sent.size() == 1);
  }
}

TEST_CASE("the client's handshake is repeated on a new connection, and its response dropped") {
  World w;
  w.connect();
  w.route.from_client(request(0, "initialize"));
  w.route.message(w.lane(), w.ends.sent[0].exchange, R"({"id":0,"result":{}})");
  w.route.from_client(R"({"jsonrpc":"2.0","method":"notifications/initialized"})");
  w.lose();
  w.route.from_client(request(1, "ping"));
  w.ends.sent.clear();
  w.ends.printed.clear();
  w.reconnect();
  REQUIRE(w.ends.sent.size() == 3);
  CHECK(w.ends.sent[0].text == request(0, "initialize"));
  CHECK(w.ends.sent[1].text.find("notifications/initialized") != std::string::npos);
  CHECK(w.ends.sent[2].text == request(1, "ping"));
  w.route.message(w.lane(), w.ends.sent[0].exchange, R"({"id":0,"result":{"x":1}})");
  CHECK(w.ends.printed.empty());
  w.route.message(w.lane(), w.ends.sent[2].exchange, R"({"id":1,"result":{}})");
  CHECK(w.ends.printed.size() == 1);
}

TEST_CASE("an initialize that was rejected or unanswered is not repeated") {
  World w;
  w.connect();
  w.route.from_client(request(0, "initialize"));
  SECTION("refused") {
    w.route.message(w.lane(), w.ends.sent[0].exchange, R"({"id":0,"error":{"code":1}})");
  }
  SECTION("never answered") {}
  w.lose();
  w.ends.sent.clear();
  w.reconnect();
  CHECK(w.ends.sent.empty());
}

TEST_CASE(
    "a message too large for a frame is answered with an error, and the next message is sent") {
  World w;
  w.connect();
  w.ends.send_status = BH_E_INVALID;
  w.ends.send_error = "frame encode failed: too large";
  w.route.from_client(request(1, "tools/call"));
  REQUIRE(w.ends.printed.size() == 1);
  CHECK(error_of(w.ends.printed[0]).find("frame encode failed") != std::string::npos);
  w.ends.send_status = BH_OK;
  w.route.from_client(request(2, "tools/call"));
  CHECK(w.ends.sent.size() == 1);
}

TEST_CASE("when stream numbers are exhausted, the message is sent on a new connection") {
  World w;
  w.connect();
  w.route.from_client(request(1, "tools/call"));
  w.opened_before = w.ends.opened.size();
  w.ends.send_status = BH_E_SESSION_LOST;
  w.ends.send_error = "used up";
  w.route.from_client(request(2, "tools/list"));
  CHECK(w.ends.closes == 1);
  REQUIRE(w.ends.printed.size() == 1);  // the first request was sent before the connection was lost
  w.ends.send_status = BH_OK;
  w.ends.sent.clear();
  w.reconnect();
  REQUIRE(w.ends.sent.size() == 1);
  CHECK(w.ends.sent[0].text == request(2, "tools/list"));
}

TEST_CASE(
    "if no connection opens in time, requests are answered with an error and the route fails") {
  World w(short_outage());
  w.ends.refuse_open = true;
  w.route.from_client(request(1, "initialize"));
  w.route.lane_down(w.lane(), {BH_E_UNAVAILABLE, "no listener"});
  w.until([&] { return w.ends.dones == 1; });
  REQUIRE(w.ends.printed.size() == 1);
  CHECK(w.ends.failure == "cannot reach endpoint: no listener");
  CHECK(w.ends.opened.size() > 1);
}

TEST_CASE("after the first connection, connecting is retried forever with few log lines") {
  World w;
  w.connect();
  w.lose();
  w.ends.refuse_open = true;
  w.until([&] { return w.ends.opened.size() > 30; });
  CHECK(w.ends.dones == 0);
  CHECK(w.ends.logged.size() == 1);
}

TEST_CASE("a connection that fails immediately does not flood the log") {
  World w;
  w.connect();
  for (int i = 0; i < 50; ++i) {
    w.lose();
    w.reconnect();
  }
  CHECK(w.ends.logged.size() <= 11);
}

TEST_CASE("end of input: half-close, responses, shutdown") {
  World w;
  w.connect();
  w.route.from_client(request(1, "tools/call"));
  w.route.input_ended();
  CHECK(w.ends.finishes == 1);
  CHECK(w.ends.dones == 0);
  w.route.message(w.lane(), w.ends.sent[0].exchange, "answer");
  SECTION("the endpoint ends its half") {
    w.lose();
    CHECK(w.ends.dones == 1);
  }
  SECTION("it does not") {
    w.until([&] { return w.ends.dones == 1; });
  }
  CHECK(w.ends.printed == std::vector<std::string>{"answer"});
  CHECK(w.ends.failure.empty());
  CHECK(w.ends.opened.size() == 1);
}

TEST_CASE("end of input: each response restarts the timeout") {
  constexpr std::uint64_t ms = 1'000'000, drain_ms = 60;
  RouteLimits limits = quick();
  limits.drain_ms = drain_ms;
  for (int attempt = 0; attempt < 50; ++attempt) {
    World w(limits);
    w.connect();
    w.route.from_client(request(1, "tools/call"));
    w.route.from_client(request(2, "tools/call"));
    w.route.input_ended();
    std::this_thread::sleep_for(std::chrono::milliseconds(drain_ms / 2));
    w.reactor->poll(0);
    if (w.ends.dones == 1) continue;  // too slow: the route has already given up
    const std::uint64_t answered = w.reactor->now_ns();
    w.route.message(w.lane(), w.ends.sent[0].exchange, "answer");
    w.until([&] { return w.ends.dones == 1; });
    // There is no upper limit, because the machine may be slow.
    CHECK(w.reactor->now_ns() - answered >= drain_ms * ms);
    return;
  }
  WARN("this machine was too slow to see it");
}

TEST_CASE("a connection lost while sending queued messages fails only the messages already sent") {
  World w;
  w.route.from_client(request(1, "a"));
  w.route.from_client(request(2, "b"));
  w.route.from_client(request(3, "c"));
  w.ends.send_status = BH_E_SESSION_LOST;
  w.opened_before = w.ends.opened.size();
  w.connect();
  CHECK(w.ends.printed.empty());
  w.ends.send_status = BH_OK;
  w.reconnect();
  REQUIRE(w.ends.sent.size() == 3);
  for (std::size_t i = 0; i < 3; ++i)
    CHECK(w.ends.sent[i].text.find("\"id\":" + std::to_string(i + 1)) != std::string::npos);
  CHECK(w.ends.printed.empty());
}

TEST_CASE("end of input before the connection is open: requests are still sent") {
  World w;
  w.route.from_client(request(1, "tools/list"));
  w.route.input_ended();
  CHECK(w.ends.dones == 0);
  w.connect();
  REQUIRE(w.ends.sent.size() == 1);
  CHECK(w.ends.finishes == 1);
}

TEST_CASE("a request that the client cancels receives no response") {
  World w;
  w.connect();
  w.route.from_client(request(1, "tools/call"));
  w.route.exchange_failed(w.lane(), w.ends.sent[0].exchange, {BH_E_CANCELLED, "nothing to say"});
  w.lose();
  CHECK(w.ends.printed.empty());
}

TEST_CASE("messages above the limits are answered with errors") {
  RouteLimits limits = quick();
  limits.max_pending = 2;
  limits.max_waiting_bytes = 200;
  World w(limits);
  SECTION("in-flight requests") {
    w.connect();
    for (int i = 0; i < 3; ++i) w.route.from_client(request(i, "x"));
    CHECK(w.ends.sent.size() == 2);
    REQUIRE(w.ends.printed.size() == 1);
    CHECK(error_of(w.ends.printed[0]).find("too many requests") != std::string::npos);
  }
  SECTION("bytes of unsent messages") {
    w.route.from_client(request(1, std::string(300, 'm').c_str()));
    REQUIRE(w.ends.printed.size() == 1);
    CHECK(error_of(w.ends.printed[0]).find("too much data is waiting") != std::string::npos);
  }
}

TEST_CASE("messages from a previous lane are ignored") {
  World w;
  w.connect();
  const bh_lane old = w.lane();
  w.lose();
  w.reconnect();
  w.route.message(old, 0, "late");
  w.route.lane_down(old, {BH_E_IO, "late"});
  CHECK(w.ends.printed.empty());
  CHECK(w.ends.closes == 1);
}

TEST_CASE("a response is sent only on the connection of its request") {
  World w;
  w.connect();
  const std::string question = request(7, "elicitation/create");
  const std::string yes = R"({"jsonrpc":"2.0","id":7,"result":{"action":"accept"}})";
  w.route.from_client(yes);
  CHECK(w.ends.sent.empty());
  w.route.message(w.lane(), 0, question);
  w.route.from_client(yes);
  REQUIRE(w.ends.sent.size() == 1);
  CHECK(w.ends.sent[0].kind == BH_LANE_RESPONSE);
  w.route.from_client(yes);
  w.route.message(w.lane(), 0, question);
  w.lose();
  w.reconnect();
  w.route.from_client(yes);
  CHECK(w.ends.sent.size() == 1);
}

TEST_CASE("a client that does not read its responses pauses the current lane and the next lane") {
  World w;
  w.connect();
  w.route.client_full(true);
  CHECK(w.ends.lane_held);
  CHECK_FALSE(w.ends.client_held);  // the client may cancel requests and send responses
  w.lose();
  w.ends.lane_held = false;
  w.reconnect();
  CHECK(w.ends.lane_held);
  w.route.client_full(false);
  CHECK_FALSE(w.ends.lane_held);
}

TEST_CASE("the client is paused while the endpoint does not read") {
  World w;
  w.connect();
  w.route.lane_full(w.lane(), true);
  CHECK(w.ends.client_held);
  SECTION("until it reads") {
    w.route.lane_full(w.lane(), false);
  }
  SECTION("or is lost") {
    w.lose();
  }
  CHECK_FALSE(w.ends.client_held);
}

TEST_CASE("the client is paused at the request limit until half of the requests are answered") {
  RouteLimits limits = quick();
  limits.max_pending = 4;
  World w(limits);
  w.connect();
  for (int i = 0; i < 4; ++i) {
    CHECK_FALSE(w.ends.client_held);
    w.route.from_client(request(i, "x"));
  }
  CHECK(w.ends.client_held);
  for (int i = 0; i < 3; ++i) {
    CHECK(w.ends.client_held);
    w.route.message(w.lane(), w.ends.sent[static_cast<std::size_t>(i)].exchange, "answer");
  }
  CHECK_FALSE(w.ends.client_held);
  CHECK(w.ends.printed.size() == 3);
}

TEST_CASE("an earlier pause of the client does not lower other limits") {
  RouteLimits limits = quick();
  limits.max_pending = 4;
  World w(limits);
  w.connect();
  for (int i = 0; i < 3; ++i) w.route.from_client(request(i, "x"));
  w.route.lane_full(w.lane(), true);
  w.route.lane_full(w.lane(), false);
  CHECK_FALSE(w.ends.client_held);
}

TEST_CASE("the client is paused at the limit of messages that wait for a connection") {
  RouteLimits limits = quick();
  limits.max_waiting_bytes = 400;
  World w(limits);
  w.route.from_client(request(1, std::string(250, 'm').c_str()));
  CHECK(w.ends.client_held);
  CHECK(w.ends.printed.empty());
  w.connect();
  CHECK_FALSE(w.ends.client_held);
  CHECK(w.ends.sent.size() == 1);
}

TEST_CASE("the client is paused if it does not read the errors that the route creates") {
  RouteLimits limits = quick();
  limits.max_own_bytes = 300;
  World w(limits);
  w.connect();
  w.ends.send_status = BH_E_INVALID;
  w.ends.send_error = std::string(200, 'e');
  w.route.client_full(true);
  w.route.from_client(request(1, "x"));
  CHECK_FALSE(w.ends.client_held);
  w.route.from_client(request(2, "x"));
  CHECK(w.ends.client_held);
  w.reactor->poll(0);
  CHECK(w.ends.client_held);
  w.route.client_full(false);
  CHECK_FALSE(w.ends.client_held);
}
