// Tests event streams: resumption, the GET stream, and the fallback to HTTP+SSE.
#include <catch2/catch.hpp>
#include <chrono>

#include "fixture.hpp"

using namespace connector_http::testing;

namespace {

std::uint64_t now_ms() {
  timespec t{};
  ::clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1000 +
         static_cast<std::uint64_t>(t.tv_nsec) / 1'000'000;
}

const std::string initialize_text = R"({"jsonrpc":"2.0","id":1,"method":"initialize","params":{}})";

// An HTTP+SSE server: GET /sse opens the event stream, which announces the endpoint. The responses
// to POSTs are sent on the stream.
class OldServer {
 public:
  explicit OldServer(std::string endpoint, int post_status = 405)
      : endpoint_(std::move(endpoint)), server_([this, post_status](const Request &r, Peer &peer) {
          if (r.method == "GET") return stream(peer);
          if (r.target == "/sse") return peer.answer(post_status, "", "", "");
          peer.answer(202, "Accepted", "", "text/plain");
          reply(r);
        }) {}
  std::string url() const { return server_.url("/sse"); }
  Server &server() { return server_; }
  void end_stream() { ::shutdown(stream_fd_, SHUT_RDWR); }

 private:
  void stream(Peer &peer) {
    stream_fd_ = peer.fd();
    peer.send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n");
    peer.send(": hello\r\n\r\nevent: endpoint\r\ndata: " + endpoint_ + "\r\n\r\n");
    peer.wait_closed();
  }
  void reply(const Request &r) {
    const std::size_t at = r.body.find("\"id\":");
    if (at == std::string::npos) return;
    const std::string text =
        "event: message\r\ndata: " + result(std::stoi(r.body.substr(at + 5))) + "\r\n\r\n";
    ::send(stream_fd_, text.data(), text.size(), MSG_NOSIGNAL);
  }
  std::string endpoint_;
  std::atomic<int> stream_fd_ = -1;
  Server server_;
};

}  // namespace

TEST_CASE("a stream that ends before the response is resumed after the server's retry time") {
  std::atomic<std::uint64_t> ended = 0, resumed = 0;
  Server server([&](const Request &r, Peer &peer) {
    if (r.method == "GET" && r.header("last-event-id") == "e-1") {
      resumed = now_ms();
      peer.begin_events();
      peer.event("id: e-2\ndata: " + result(2) + "\n\n");
      return peer.end_events();
    }
    if (handshake_step(r, peer)) return;
    peer.begin_events();
    peer.event("id: e-1\nretry: 300\ndata:\n\n");
    ended = now_ms();
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
  // The limit is below 300 because the client may have read its clock before `ended` was set.
  CHECK(resumed - ended >= 250);
  REQUIRE(f.close(lane));
}

TEST_CASE("a stream is also resumed after a broken connection") {
  Server server([&](const Request &r, Peer &peer) {
    if (r.method == "GET" && r.header("last-event-id") == "9") {
      peer.begin_events();
      peer.event("data: " + result(2) + "\n\n");
      return peer.end_events();
    }
    if (handshake_step(r, peer)) return;
    peer.begin_events();
    peer.event("id: 9\nretry: 20\ndata: {\"method\":\"x\"}\n\n");
    peer.reset();
  });
  Fixture f;
  void *lane = f.open(Fixture::definition(server.url()));
  REQUIRE(f.handshake(lane));
  REQUIRE(f.send(lane, 2, call(2)) == BH_OK);
  REQUIRE(f.wait([&] { return !f.seen.events.empty() && f.seen.events.back().text == result(2); }));
}

TEST_CASE("the call fails if a stream ends early without an event id or cannot be resumed") {
  const bool with_id = GENERATE(false, true);
  Server server([&](const Request &r, Peer &peer) {
    if (handshake_step(r, peer)) return;  // responds to a GET with status 405
    peer.begin_events();
    peer.event(std::string(with_id ? "id: 1\n" : "") + "retry: 20\ndata: {\"method\":\"x\"}\n\n");
    peer.end_events();
  });
  Fixture f;
  void *lane = f.open(Fixture::definition(server.url()));
  REQUIRE(f.handshake(lane));
  REQUIRE(f.send(lane, 2, call(2)) == BH_OK);
  REQUIRE(f.wait_events(2));
  CHECK(f.seen.events[1].kind == Event::failed);
  CHECK(f.seen.events[1].code == BH_E_IO);
  CHECK(f.seen.events[1].text.find("may have run") != std::string::npos);
}

TEST_CASE("a response in a batch is the response to the request") {
  std::atomic<int> resumed = 0;
  Server server([&](const Request &r, Peer &peer) {
    if (r.method == "GET" && !r.header("last-event-id").empty()) ++resumed;
    if (handshake_step(r, peer)) return;  // status 405 for a GET
    peer.begin_events();
    peer.event("id: 1\nretry: 10\ndata: [{\"method\":\"x\"}," + result(2) + "]\n\n");
    peer.end_events();
  });
  Fixture f;
  void *lane = f.open(Fixture::definition(server.url()));
  REQUIRE(f.handshake(lane));
  REQUIRE(f.send(lane, 2, call(2)) == BH_OK);
  REQUIRE(f.wait_events(2));
  const std::uint64_t later = now_ms() + 300;  // many times the retry time
  f.wait([&] { return now_ms() > later; });
  CHECK(resumed == 0);
  REQUIRE(f.seen.events.size() == 2);
  CHECK(f.seen.events[0].text == R"({"method":"x"})");
  CHECK(f.seen.events[1].text == result(2));
  REQUIRE(f.close(lane));
}

TEST_CASE("resumption is limited") {
  std::atomic<int> gets = 0;
  Server server([&](const Request &r, Peer &peer) {
    if (r.method == "GET" && !r.header("last-event-id").empty()) {
      ++gets;
      peer.begin_events();
      return peer.end_events();
    }
    if (handshake_step(r, peer)) return;
    peer.begin_events();
    peer.event("id: 1\nretry: 20\ndata:\n\n");
    peer.end_events();
  });
  Fixture f;
  void *lane = f.open(Fixture::definition(server.url()));
  REQUIRE(f.handshake(lane));
  REQUIRE(f.send(lane, 2, call(2)) == BH_OK);
  REQUIRE(f.wait_events(1));
  CHECK(f.seen.events[0].kind == Event::failed);
  CHECK(gets == 5);
}

TEST_CASE("the GET stream delivers unrelated messages and is reopened with the last event id") {
  std::atomic<int> gets = 0;
  std::string second_id;
  Server server([&](const Request &r, Peer &peer) {
    if (r.method == "GET") {
      const int n = ++gets;
      peer.begin_events();
      peer.event("id: g" + std::to_string(n) + "\nretry: 20\ndata: {\"method\":\"n" +
                 std::to_string(n) + "\"}\n\n");
      if (n >= 2) return peer.wait_closed();
      return peer.end_events();
    }
    handshake_step(r, peer);
  });
  Fixture f;
  void *lane = f.open(Fixture::definition(server.url()));
  REQUIRE(f.handshake(lane));
  REQUIRE(f.wait_events(2));
  CHECK(f.seen.events[0].exchange == 0);
  CHECK(f.seen.events[0].text == R"({"method":"n1"})");
  CHECK(f.seen.events[1].text == R"({"method":"n2"})");
  std::vector<Request> got;
  for (const Request &r : server.requests()) {
    if (r.method == "GET") got.push_back(r);
  }
  CHECK(got[0].header("last-event-id").empty());
  CHECK(got[0].header("mcp-session-id") == "s-1");
  CHECK(got[0].header("mcp-protocol-version") == "2025-06-18");
  CHECK(got[1].header("last-event-id") == "g1");
  REQUIRE(f.close(lane));
}

TEST_CASE("GET refused with 405, 404 or 400 is not retried") {
  const int status = GENERATE(405, 404, 400);
  std::atomic<int> gets = 0;
  Server server([&](const Request &r, Peer &peer) {
    if (r.method == "GET") return ++gets, peer.answer(status, "");
    handshake_step(r, peer);
  });
  Fixture f;
  void *lane = f.open(Fixture::definition(server.url()));
  REQUIRE(f.handshake(lane));
  REQUIRE(f.wait([&] { return gets == 1; }));
  f.host.run_for(60);
  CHECK(gets == 1);
  CHECK(f.seen.events.empty());
}

TEST_CASE("a temporarily refused GET is retried, and logged once") {
  const int status = GENERATE(409, 503);
  std::atomic<int> gets = 0;
  Server server([&](const Request &r, Peer &peer) {
    if (r.method != "GET") return void(handshake_step(r, peer));
    if (++gets == 1) return peer.answer(status, "");
    peer.begin_events();
    peer.event("data: {\"method\":\"n\"}\n\n");
    peer.wait_closed();
  });
  Fixture f;
  void *lane = f.open(Fixture::definition(server.url()));
  REQUIRE(f.handshake(lane));
  REQUIRE(f.wait([&] { return f.seen.events.size() == 1; }, 20'000));
  CHECK(f.seen.events[0].text == R"({"method":"n"})");
  int told = 0;
  for (const auto &line : f.host.logs()) {
    if (line.text.find("event stream was rejected") != std::string::npos) ++told;
  }
  CHECK(told == 1);
  REQUIRE(f.close(lane));
}

TEST_CASE("if a GET stream worked and is refused after a restart, the session is lost") {
  std::atomic<int> gets = 0;
  Server server([&](const Request &r, Peer &peer) {
    if (r.method == "GET") {
      if (++gets > 1) return peer.answer(404, "");
      peer.begin_events();
      peer.event("retry: 20\ndata: {\"method\":\"n\"}\n\n");
      return peer.end_events();
    }
    handshake_step(r, peer);
  });
  Fixture f;
  void *lane = f.open(Fixture::definition(server.url()));
  REQUIRE(f.handshake(lane));
  REQUIRE(f.wait([&] { return f.count(Event::down, 1) == 1; }));
  CHECK(f.seen.events.back().code == BH_E_SESSION_LOST);
  REQUIRE(f.close(lane));
}

TEST_CASE("if a stream worked and the server becomes unreachable, the lane is down") {
  auto server = std::make_unique<Server>([&](const Request &r, Peer &peer) {
    if (r.method != "GET") return void(handshake_step(r, peer));
    peer.begin_events();
    peer.event("retry: 20\ndata: {\"method\":\"n\"}\n\n");
    peer.wait_closed();
  });
  Fixture f;
  void *lane = f.open(Fixture::definition(server->url()));
  REQUIRE(f.handshake(lane));
  REQUIRE(f.wait_events(1));
  server.reset();
  REQUIRE(f.wait([&] { return f.count(Event::down, 1) == 1; }));
  CHECK(f.seen.events.back().code == BH_E_UNAVAILABLE);
  REQUIRE(f.close(lane));
}

TEST_CASE("an old server is detected by its response to initialize") {
  const int status = GENERATE(400, 404, 405);
  OldServer old("/messages?session=1", status);
  Fixture f;
  void *lane = f.open(Fixture::definition(old.url()));
  REQUIRE(f.send(lane, 1, initialize_text, BH_LANE_REQUEST, BH_LANE_INITIALIZE) == BH_OK);
  REQUIRE(f.wait_events(1));
  CHECK(f.seen.events[0].kind == Event::message);
  CHECK(f.seen.events[0].exchange == 0);  // HTTP+SSE does not associate messages with exchanges
  CHECK(f.seen.events[0].text == result(1));
  f.notify(lane, R"({"jsonrpc":"2.0","method":"notifications/initialized"})");
  f.ready(lane);
  REQUIRE(f.send(lane, 2, call(2)) == BH_OK);
  REQUIRE(f.wait_events(2));
  CHECK(f.seen.events[1].text == result(2));
  for (const Request &r : old.server().requests()) {
    if (r.body == call(2)) CHECK(r.target == "/messages?session=1");
  }
  REQUIRE(f.close(lane));
}

TEST_CASE("type \"sse\" uses HTTP+SSE immediately, and the lane is down when the stream is lost") {
  OldServer old("messages");  // relative to /sse
  Fixture f;
  void *lane = f.open(R"({"type":"sse","url":")" + old.url() + "\"}");
  REQUIRE(f.send(lane, 1, initialize_text, BH_LANE_REQUEST, BH_LANE_INITIALIZE) == BH_OK);
  REQUIRE(f.wait_events(1));
  CHECK(f.seen.events[0].text == result(1));
  CHECK(old.server().requests()[0].method == "GET");
  old.end_stream();
  REQUIRE(f.wait([&] { return f.count(Event::down, 1) == 1; }));
  CHECK(f.send(lane, 2, call(2)) == BH_E_UNAVAILABLE);
  REQUIRE(f.close(lane));
}

TEST_CASE("an endpoint of another origin is rejected") {
  const std::string endpoint =
      GENERATE(as<std::string>{}, "http://evil.example/messages", "//evil.example/x",
               "https://127.0.0.1/x", "javascript:alert(1)");
  OldServer old(endpoint);
  Fixture f;
  void *lane = f.open(R"({"type":"sse","url":")" + old.url() + "\"}");
  REQUIRE(f.send(lane, 1, initialize_text, BH_LANE_REQUEST, BH_LANE_INITIALIZE) == BH_OK);
  REQUIRE(f.wait([&] { return f.count(Event::down, 1) == 1; }));
  CHECK(f.seen.events.back().code == BH_E_PROTOCOL);
  CHECK(f.seen.events.back().text.find("endpoint") != std::string::npos);
  REQUIRE(f.close(lane));
}

TEST_CASE("if neither transport works, the first error is reported") {
  Server server([&](const Request &, Peer &peer) { peer.answer(404, "", "", "text/html"); });
  Fixture f;
  void *lane = f.open(Fixture::definition(server.url("/wrong")));
  REQUIRE(f.send(lane, 1, initialize_text, BH_LANE_REQUEST, BH_LANE_INITIALIZE) == BH_OK);
  REQUIRE(f.wait_events(1));
  CHECK(f.seen.events[0].kind == Event::failed);
  CHECK(f.seen.events[0].exchange == 1);
  CHECK(f.seen.events[0].text.find("check the url's path") != std::string::npos);
  // The lane is usable after the failure.
  REQUIRE(f.send(lane, 1, initialize_text, BH_LANE_REQUEST, BH_LANE_INITIALIZE) == BH_OK);
  REQUIRE(f.wait_events(2));
}

TEST_CASE("an initialize request refused with 401 does not fall back to HTTP+SSE") {
  Server server([&](const Request &, Peer &peer) {
    peer.answer(401, "", "WWW-Authenticate: Bearer\r\n", "");
  });
  Fixture f;
  void *lane = f.open(Fixture::definition(server.url()));
  REQUIRE(f.send(lane, 1, initialize_text, BH_LANE_REQUEST, BH_LANE_INITIALIZE) == BH_OK);
  REQUIRE(f.wait_events(1));
  CHECK(f.seen.events[0].code == BH_E_AUTH);
  CHECK(server.requests().size() == 1);
}
