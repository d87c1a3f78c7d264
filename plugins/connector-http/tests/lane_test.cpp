// Tests Streamable HTTP with the whole plugin: responses, sessions, headers and failures.
#include <bulkhead/cpp/clock.hpp>

#include <atomic>
#include <catch2/catch.hpp>

#include "fixture.hpp"

using namespace connector_http::testing;

TEST_CASE("JSON and event stream responses are received, with session and version headers") {
  Server server([](const Request &r, Peer &peer) {
    if (handshake_step(r, peer)) return;
    if (r.body.find("\"id\":2") != std::string::npos) return peer.answer(200, result(2));
    peer.begin_events();
    peer.event(
        "event: message\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\"}\n\n");
    peer.event("data: " + result(3) + "\n\n");
    peer.end_events();
  });
  Fixture f;
  void *lane = f.open(Fixture::definition(server.url()));
  REQUIRE(f.handshake(lane));
  REQUIRE(f.send(lane, 2, call(2)) == BH_OK);
  REQUIRE(f.wait_events(1));
  CHECK(f.seen.events[0].kind == Event::message);
  CHECK(f.seen.events[0].exchange == 2);
  CHECK(f.seen.events[0].text == result(2));

  REQUIRE(f.send(lane, 3, call(3)) == BH_OK);
  REQUIRE(f.wait_events(3));
  CHECK(f.seen.events[1].exchange == 3);
  CHECK(f.seen.events[1].text.find("progress") != std::string::npos);
  CHECK(f.seen.events[2].text == result(3));

  REQUIRE(f.close(lane));
  const auto requests = server.requests();
  CHECK(requests[0].header("mcp-session-id").empty());
  CHECK(requests[0].header("accept") == "application/json, text/event-stream");
  CHECK(requests[0].header("content-type") == "application/json");
  bool deleted = false;
  for (const Request &r : requests) {
    if (r.method == "POST" && r.body.find("tools/call") != std::string::npos) {
      CHECK(r.header("mcp-session-id") == "s-1");
      CHECK(r.header("mcp-protocol-version") == "2025-06-18");
    }
    deleted = deleted || (r.method == "DELETE" && r.header("mcp-session-id") == "s-1");
  }
  CHECK(deleted);
  f.stop();
  CHECK(f.host.watches() == 0);
  CHECK(f.host.timers() == 0);
  CHECK(f.host.faults().empty());
}

TEST_CASE(
    "the bearer token and custom headers are sent with every request; reserved headers are "
    "rejected") {
  Server server([](const Request &r, Peer &peer) { handshake_step(r, peer); });
  Fixture f;
  const std::string headers =
      R"(,"headers":{"Authorization":"Bearer t0ken","X-Team":"blue green"})";
  void *lane = f.open(Fixture::definition(server.url(), headers));
  REQUIRE(f.handshake(lane));
  REQUIRE(f.wait([&] { return server.requests().size() == 3; }));
  for (const Request &r : server.requests()) {
    CHECK(r.header("authorization") == "Bearer t0ken");
    CHECK(r.header("x-team") == "blue green");
  }
  for (const char *name : {"Accept", "mcp-session-id", "Last-Event-ID", "host", "Content-Length"}) {
    void *other = nullptr;
    const std::string bad = std::string(R"(,"headers":{")") + name + R"(":"v"})";
    CHECK(f.try_open(9, Fixture::definition(server.url(), bad), &other) == BH_E_INVALID);
    CHECK(bh::text(f.error).find(name) != std::string_view::npos);
  }
  void *other = nullptr;
  CHECK(f.try_open(9, Fixture::definition(server.url(), R"(,"headers":{"X-A":"secret\r\nX-B: c"})"),
                   &other) == BH_E_INVALID);
  CHECK(bh::text(f.error).find("secret") == std::string_view::npos);
  for (const auto &line : f.host.logs()) CHECK(line.text.find("t0ken") == std::string::npos);
}

TEST_CASE("each class of failure has its own code and text") {
  struct Case {
    int status;
    const char *headers;
    bh_status code;
    const char *text;
    std::uint32_t retry_after_ms;
  };
  const Case c = GENERATE(
      Case{401, "WWW-Authenticate: Bearer realm=\"x\"\r\n", BH_E_AUTH, "authentication required",
           0},
      Case{403, "WWW-Authenticate: Bearer error=\"insufficient_scope\", scope=\"a:read b\"\r\n",
           BH_E_AUTH, "insufficient scope: a:read b", 0},
      Case{403, "", BH_E_DENIED, "access denied", 0}, Case{500, "", BH_E_IO, "server error 500", 0},
      Case{503, "", BH_E_IO, "server error 503", 0},
      Case{503, "Retry-After: 7\r\n", BH_E_UNAVAILABLE, "temporarily unavailable", 7000},
      Case{429, "Retry-After: 2\r\n", BH_E_UNAVAILABLE, "too many requests", 2000},
      Case{307, "Location: https://example.com/new?token=x\r\n", BH_E_PROTOCOL,
           "redirected to https://example.com/new (HTTP 307)", 0});
  Server server([&](const Request &r, Peer &peer) {
    if (handshake_step(r, peer)) return;
    peer.answer(c.status, "oops", c.headers, "text/plain");
  });
  Fixture f;
  void *lane = f.open(Fixture::definition(server.url()));
  REQUIRE(f.handshake(lane));
  REQUIRE(f.send(lane, 2, call(2)) == BH_OK);
  REQUIRE(f.wait_events(1));
  CHECK(f.seen.events[0].kind == Event::failed);
  CHECK(f.seen.events[0].exchange == 2);
  CHECK(f.seen.events[0].code == c.code);
  CHECK(f.seen.events[0].text.find(c.text) != std::string::npos);
  CHECK(f.seen.events[0].retry_after_ms == c.retry_after_ms);
  CHECK(f.seen.events[0].text.find("token") == std::string::npos);
}

TEST_CASE("a failure has the response's status, challenges and scope") {
  const std::string scope(200, 's');
  const bool challenged = GENERATE(true, false);
  Server server([&](const Request &r, Peer &peer) {
    if (handshake_step(r, peer)) return;
    if (!challenged) return peer.answer(500, "oops", "WWW-Authenticate: Basic\r\n", "text/plain");
    peer.answer(401, "oops",
                "WWW-Authenticate: Basic realm=\"r\"\r\nWWW-Authenticate: Bearer scope=\"" + scope +
                    "\"\r\n",
                "text/plain");
  });
  Fixture f;
  void *lane = f.open(Fixture::definition(server.url()));
  REQUIRE(f.handshake(lane));
  REQUIRE(f.send(lane, 2, call(2)) == BH_OK);
  REQUIRE(f.wait_events(1));
  CHECK(f.seen.http_status == (challenged ? 401u : 500u));
  CHECK(f.seen.scope == (challenged ? scope : ""));
  const std::vector<std::string> both{"Basic realm=\"r\"", "Bearer scope=\"" + scope + "\""};
  CHECK(f.seen.challenges == (challenged ? both : std::vector<std::string>{}));
}

TEST_CASE("a challenge that is too long is omitted, but counts") {
  Server server([&](const Request &r, Peer &peer) {
    if (handshake_step(r, peer)) return;
    peer.answer(403, "oops",
                "WWW-Authenticate: Bearer error=\"insufficient_scope\", scope=\"admin\", pad=\"" +
                    std::string(BH_CHALLENGE_BYTES, 'x') +
                    "\"\r\nWWW-Authenticate: Basic realm=\"r\"\r\n",
                "text/plain");
  });
  Fixture f;
  void *lane = f.open(Fixture::definition(server.url()));
  REQUIRE(f.handshake(lane));
  REQUIRE(f.send(lane, 2, call(2)) == BH_OK);
  REQUIRE(f.wait_events(1));
  CHECK(f.seen.events[0].text.find("insufficient scope: admin") != std::string::npos);
  CHECK(f.seen.scope == "admin");
  CHECK(f.seen.challenges == std::vector<std::string>{"Basic realm=\"r\""});
}

TEST_CASE("a lost session fails the call and takes the lane down") {
  const int status = GENERATE(404, 400);
  Server server([&](const Request &r, Peer &peer) {
    if (handshake_step(r, peer)) return;
    peer.answer(status, R"({"jsonrpc":"2.0","id":null,"error":{"code":-32000,)"
                        R"("message":"Bad Request: No valid session ID provided"}})");
  });
  Fixture f;
  void *lane = f.open(Fixture::definition(server.url()));
  REQUIRE(f.handshake(lane));
  REQUIRE(f.send(lane, 2, call(2)) == BH_OK);
  REQUIRE(f.wait_events(2));
  CHECK(f.seen.events[0].kind == Event::failed);
  CHECK(f.seen.events[0].code == BH_E_SESSION_LOST);
  CHECK(f.seen.events[1].kind == Event::down);
  CHECK(f.seen.events[1].code == BH_E_SESSION_LOST);
  CHECK(f.seen.events[1].text.find("session expired") != std::string::npos);
  CHECK(f.seen.http_status == static_cast<std::uint32_t>(status));
  REQUIRE(f.close(lane));
  for (const Request &r : server.requests()) CHECK(r.method != "DELETE");
}

TEST_CASE("an error response that contains a JSON-RPC error for the request is delivered") {
  const std::string body = R"({"jsonrpc":"2.0","id":2,"error":{"code":-32601,"message":"no"}})";
  Server server([&](const Request &r, Peer &peer) {
    if (handshake_step(r, peer, "")) return;
    peer.answer(404, body);
  });
  Fixture f;
  void *lane = f.open(Fixture::definition(server.url()));
  REQUIRE(f.handshake(lane));
  REQUIRE(f.send(lane, 2, call(2)) == BH_OK);
  REQUIRE(f.wait_events(1));
  CHECK(f.seen.events[0].kind == Event::message);
  CHECK(f.seen.events[0].text == body);
}

TEST_CASE("requests wait for the first notification") {
  Server server([](const Request &r, Peer &peer) {
    if (r.body.find("notifications/initialized") != std::string::npos) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    if (handshake_step(r, peer)) return;
    peer.answer(200, result(2));
  });
  Fixture f;
  void *lane = f.open(Fixture::definition(server.url()));
  REQUIRE(f.handshake(lane));
  REQUIRE(f.send(lane, 2, call(2)) == BH_OK);
  REQUIRE(f.wait_events(1));
  const auto requests = server.requests();
  CHECK(requests[1].body.find("initialized") != std::string::npos);
  REQUIRE(requests.size() >= 3);
  CHECK(requests[2].number == 3);
}

TEST_CASE("a lane may be closed in a message callback") {
  Server server([](const Request &r, Peer &peer) {
    if (handshake_step(r, peer)) return;
    peer.begin_events();
    peer.event("data: {\"jsonrpc\":\"2.0\",\"method\":\"a\"}\n\ndata: " + result(2) + "\n\n");
    peer.end_events();
  });
  Fixture f;
  void *lane = f.open(Fixture::definition(server.url()));
  REQUIRE(f.handshake(lane));
  f.seen.on_event = [&](const Event &e) {
    if (e.kind == Event::message) f.connector->lane_close(f.plugin->self, lane);
  };
  REQUIRE(f.send(lane, 2, call(2)) == BH_OK);
  REQUIRE(f.wait([&] { return f.count(Event::closed, 1) == 1; }));
  CHECK(f.count(Event::message, 1) == 1);  // no event follows lane_close
  f.host.run_for(20);
  CHECK(f.count(Event::closed, 1) == 1);
}

TEST_CASE("an abandoned exchange gets no more events, and its connection is closed") {
  Server server([](const Request &r, Peer &peer) {
    if (handshake_step(r, peer)) return;
    if (r.body.find("\"id\":2") != std::string::npos) return peer.wait_closed();
    peer.answer(200, result(3));
  });
  Fixture f;
  void *lane = f.open(Fixture::definition(server.url()));
  REQUIRE(f.handshake(lane));
  REQUIRE(f.send(lane, 2, call(2)) == BH_OK);
  // Searches all requests because the GET for the event stream is sent at the same time.
  REQUIRE(f.wait([&] {
    for (const Request &r : server.requests()) {
      if (r.body == call(2)) return true;
    }
    return false;
  }));
  f.abandon(lane, 2);
  REQUIRE(f.send(lane, 3, call(3)) == BH_OK);
  REQUIRE(f.wait_events(1));
  CHECK(f.seen.events[0].exchange == 3);
  CHECK(f.seen.events.size() == 1);
}

TEST_CASE("a batch is split into messages") {
  Server server([](const Request &r, Peer &peer) {
    if (handshake_step(r, peer)) return;
    peer.answer(200, " [ {\"method\":\"a\",\"x\":\"],[\"} , " + result(2) + " ] ");
  });
  Fixture f;
  void *lane = f.open(Fixture::definition(server.url()));
  REQUIRE(f.handshake(lane));
  REQUIRE(f.send(lane, 2, call(2)) == BH_OK);
  REQUIRE(f.wait_events(2));
  CHECK(f.seen.events[0].text == R"({"method":"a","x":"],["})");
  CHECK(f.seen.events[1].text == result(2));
}

TEST_CASE("https without the http-client plugin fails with an error that names the plugin") {
  Fixture f;
  void *lane = nullptr;
  CHECK(f.try_open(1, Fixture::definition("https://127.0.0.1:1/mcp"), &lane) == BH_E_UNSUPPORTED);
  CHECK(bh::text(f.error).find("http-client") != std::string_view::npos);
}

namespace {

std::string read_request(int id) {
  return R"({"jsonrpc":"2.0","id":)" + std::to_string(id) +
         R"(,"method":"resources/read","params":{"uri":"a:b"}})";
}

// A handler that rejects the first requests with a status and Retry-After.
struct Refusing {
  int status;
  const char *retry_after;
  int times;
  std::atomic<int> seen{0};
  void operator()(const Request &r, Peer &peer) {
    if (handshake_step(r, peer)) return;
    if (seen++ < times) return peer.answer(status, "later", retry_after, "text/plain");
    peer.answer(200, result(2));
  }
};

std::uint64_t in_ms(std::uint64_t ms) {
  return bh::monotonic_ns() + ms * bh::ns_per_ms;
}

}  // namespace

TEST_CASE("a repeatable request is retried after Retry-After") {
  Refusing refusing{GENERATE(503, 429), "Retry-After: 1\r\n", 2};
  Server server([&](const Request &r, Peer &peer) { refusing(r, peer); });
  Fixture f;
  void *lane = f.open(Fixture::definition(server.url()));
  REQUIRE(f.handshake(lane));
  const std::uint64_t start = bh::monotonic_ms();
  REQUIRE(f.send(lane, 2, read_request(2), BH_LANE_REQUEST, BH_LANE_REPEATABLE, in_ms(20'000)) ==
          BH_OK);
  REQUIRE(f.wait_events(1));
  CHECK(f.seen.events[0].kind == Event::message);
  CHECK(f.seen.events[0].exchange == 2);
  CHECK(f.seen.events[0].text == result(2));
  CHECK(refusing.seen == 3);
  // The client waits for at least the time that Retry-After specifies.
  CHECK(bh::monotonic_ms() - start >= 2'000);
  std::size_t same = 0;
  for (const Request &r : server.requests()) same += r.body == read_request(2) ? 1 : 0;
  CHECK(same == 3);
}

TEST_CASE("a request is retried at most three times, and not after its deadline") {
  struct Case {
    const char *retry_after;
    std::uint32_t flags;
    std::uint64_t deadline_ms;
    int sent;
    const char *text;
  };
  const Case c = GENERATE(
      Case{"Retry-After: 1\r\n", BH_LANE_REPEATABLE, 20'000, 4,
           "temporarily unavailable (HTTP 503); after 3 retries"},
      Case{"Retry-After: 30\r\n", BH_LANE_REPEATABLE, 20'000, 1,
           "temporarily unavailable (HTTP 503); the server asks for a retry after 30 s, which "
           "exceeds the request's time-out"},
      Case{"Retry-After: 1\r\n", 0, 20'000, 1, "temporarily unavailable (HTTP 503)"},
      Case{"", BH_LANE_REPEATABLE, 20'000, 1, "server error 503; the request may have run"});
  Refusing refusing{503, c.retry_after, 100};
  Server server([&](const Request &r, Peer &peer) { refusing(r, peer); });
  Fixture f;
  void *lane = f.open(Fixture::definition(server.url()));
  REQUIRE(f.handshake(lane));
  REQUIRE(f.send(lane, 2, read_request(2), BH_LANE_REQUEST, c.flags, in_ms(c.deadline_ms)) ==
          BH_OK);
  REQUIRE(f.wait_events(1));
  CHECK(f.seen.events[0].kind == Event::failed);
  CHECK(f.seen.events[0].text == c.text);
  CHECK(refusing.seen == c.sent);
}

TEST_CASE("a request that waits for its retry can be abandoned, and ends with its lane") {
  Refusing refusing{429, "Retry-After: 1\r\n", 100};
  Server server([&](const Request &r, Peer &peer) { refusing(r, peer); });
  Fixture f;
  void *lane = f.open(Fixture::definition(server.url()));
  REQUIRE(f.handshake(lane));
  for (int id : {2, 3}) {
    REQUIRE(f.send(lane, static_cast<std::uint64_t>(id), read_request(id), BH_LANE_REQUEST,
                   BH_LANE_REPEATABLE, in_ms(20'000)) == BH_OK);
  }
  REQUIRE(f.wait([&] { return refusing.seen == 2 && f.host.timers() >= 2; }));
  f.abandon(lane, 2);
  REQUIRE(f.wait([&] { return refusing.seen == 3; }));
  REQUIRE(f.close(lane));
  f.stop();
  CHECK(refusing.seen == 3);
  CHECK(f.host.timers() == 0);
  CHECK(f.host.faults().empty());
}
