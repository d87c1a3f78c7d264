// Tests connections that are shared by lanes: reuse, lost connections, limits, and malicious and
// oversized responses.
#include <catch2/catch.hpp>
#include <chrono>

#include "fixture.hpp"

using namespace connector_http::testing;

namespace {

// Sends one call and returns the event that completes it.
Event one_call(Fixture &f, void *lane, int id) {
  f.seen.events.clear();
  if (f.send(lane, static_cast<std::uint64_t>(id), call(id)) != BH_OK) {
    return {Event::failed, 0, 0, std::string(bh::text(f.error)), f.error.code, 0};
  }
  if (!f.wait_events(1)) return {Event::failed, 0, 0, "nothing came", 0, 0};
  return f.seen.events[0];
}

}  // namespace

TEST_CASE("successive calls use one connection") {
  Server server([](const Request &r, Peer &peer) {
    if (!handshake_step(r, peer)) peer.answer(200, result(2));
  });
  Fixture f;
  void *lane = f.open(Fixture::definition(server.url()));
  REQUIRE(f.handshake(lane));
  REQUIRE(f.wait([&] { return server.requests().size() == 3; }));  // including the GET
  const int before = server.connections();
  for (int i = 0; i < 50; ++i) CHECK(one_call(f, lane, 2).kind == Event::message);
  CHECK(server.connections() == before);
}

TEST_CASE("the kernel starts probing a silent peer after half a minute") {
  Server server([](const Request &r, Peer &peer) {
    if (!handshake_step(r, peer)) peer.answer(200, result(2));
  });
  Fixture f;
  void *lane = f.open(Fixture::definition(server.url()));
  CHECK(one_call(f, lane, 2).kind == Event::message);
  int seen = 0;
  for (int fd = 3; fd < 1024; ++fd) {
    sockaddr_in peer{};
    socklen_t n = sizeof peer;
    if (::getpeername(fd, reinterpret_cast<sockaddr *>(&peer), &n) != 0) continue;
    if (peer.sin_family != AF_INET || ntohs(peer.sin_port) != server.port()) continue;
    ++seen;
    const std::pair<int, int> wanted[] = {
        {TCP_KEEPIDLE, 30}, {TCP_KEEPINTVL, 10}, {TCP_KEEPCNT, 3}};
    for (const auto &[option, value] : wanted) {
      int is = 0;
      n = sizeof is;
      CHECK(::getsockopt(fd, IPPROTO_TCP, option, &is, &n) == 0);
      CHECK(is == value);
    }
  }
  CHECK(seen == 1);
}

TEST_CASE("fifty lanes share one pool") {
  Server server([](const Request &r, Peer &peer) {
    if (!handshake_step(r, peer, "")) peer.answer(200, result(2));
  });
  Fixture f;
  std::vector<void *> lanes;
  for (bh_lane i = 1; i <= 50; ++i) {
    lanes.push_back(f.open(Fixture::definition(server.url()), i));
    // `initialize` is omitted because it would require a new connection.
    CHECK(one_call(f, lanes.back(), 2).kind == Event::message);
  }
  CHECK(server.connections() == 1);
  f.seen.events.clear();
  for (void *lane : lanes) REQUIRE(f.send(lane, 2, call(2)) == BH_OK);
  REQUIRE(f.wait_events(50));
  CHECK(server.connections() <= 50);
  for (bh_lane i = 1; i <= 50; ++i) CHECK(f.count(Event::message, i) == 1);
  for (bh_lane i = 1; i <= 50; ++i) CHECK(f.close(lanes[i - 1], i));
}

TEST_CASE("an idle connection closed by the server is not reused") {
  Server server([](const Request &r, Peer &peer) {
    if (!handshake_step(r, peer)) peer.answer(200, result(2));
  });
  Fixture f;
  void *lane = f.open(Fixture::definition(server.url()));
  CHECK(one_call(f, lane, 2).kind == Event::message);
  server.close_idle();
  // Waits until the client detects that the server has closed the connection.
  REQUIRE(f.wait([&] { return f.host.watches() == 0; }));
  CHECK(one_call(f, lane, 2).kind == Event::message);
  CHECK(server.requests().size() == 2);
}

TEST_CASE("a connection lost during a call is reported, and the call is not retried") {
  const bool reset = GENERATE(false, true);
  Server server([&](const Request &r, Peer &peer) {
    if (r.body.find("\"id\":2") != std::string::npos) return peer.answer(200, result(2));
    reset ? peer.reset() : peer.close();
  });
  Fixture f;
  void *lane = f.open(Fixture::definition(server.url()));
  CHECK(one_call(f, lane, 2).kind == Event::message);
  const Event e = one_call(f, lane, 3);
  CHECK(e.kind == Event::failed);
  CHECK(e.code == BH_E_IO);
  CHECK(e.text.find("may have run") != std::string::npos);
  f.host.run_for(30);
  CHECK(server.requests().size() == 2);
}

TEST_CASE("if no server is listening, the call fails and was not sent") {
  int port = 0;
  {
    port = Server([](const Request &, Peer &) {}).port();
  }
  Fixture f;
  void *lane = f.open(Fixture::definition("http://localhost:" + std::to_string(port) + "/mcp"));
  const Event e = one_call(f, lane, 2);
  CHECK(e.kind == Event::failed);
  CHECK(e.code == BH_E_UNAVAILABLE);
  CHECK(e.text.find("refused") != std::string::npos);
}

TEST_CASE("addresses are tried in turn, and unresolvable names are reported") {
  Server server([](const Request &r, Peer &peer) {
    if (!handshake_step(r, peer)) peer.answer(200, result(2));
  });
  Fixture f;
  // ::1 is tried first, but no server is listening on it.
  void *lane =
      f.open(Fixture::definition("http://localhost:" + std::to_string(server.port()) + "/"));
  CHECK(one_call(f, lane, 2).kind == Event::message);
  void *bad = f.open(Fixture::definition("http://nowhere.invalid/mcp"), 2);
  const Event e = one_call(f, bad, 2);
  CHECK(e.code == BH_E_UNAVAILABLE);
  CHECK(e.text.find("resolve") != std::string::npos);
}

TEST_CASE("invalid HTTP responses fail only the call") {
  const std::string raw =
      GENERATE(as<std::string>{}, "SSH-2.0-OpenSSH\r\n\r\n",
               "HTTP/1.1 200 OK\nContent-Length: 2\n\n{}\r\n\r\n",
               "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
               "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}",
               "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
               "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}",
               "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Type: "
               "application/json\r\n\r\nzz\r\n",
               "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 2\r\n\r\n{}",
               "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 0\r\n\r\n",
               "HTTP/1.1 101 Switching\r\n\r\n");
  Server server([&](const Request &r, Peer &peer) {
    if (r.body.find("\"id\":3") != std::string::npos) return peer.answer(200, result(3));
    peer.send(raw);
    peer.close();
  });
  Fixture f;
  void *lane = f.open(Fixture::definition(server.url()));
  const Event e = one_call(f, lane, 2);
  CHECK(e.kind == Event::failed);
  CHECK(e.code == BH_E_PROTOCOL);
  // Waits until the client detects that the server has closed the connection.
  REQUIRE(f.wait([&] { return f.host.watches() == 0; }));
  CHECK(one_call(f, lane, 3).kind == Event::message);
}

TEST_CASE("a response that arrives byte by byte is parsed") {
  const bool chunked = GENERATE(false, true);
  Server server([&](const Request &, Peer &peer) {
    const std::string body = result(2);
    std::string all =
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Type: application/json\r\n";
    if (chunked) {
      all += "Transfer-Encoding: chunked\r\n\r\n5;x=y\r\n" + body.substr(0, 5) + "\r\n";
      char size[16];
      std::snprintf(size, sizeof size, "%zX\r\n", body.size() - 5);
      all += size + body.substr(5) + "\r\n0\r\nTrailer: t\r\n\r\n";
    } else {
      all += "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
    }
    for (char c : all) {
      peer.send({&c, 1});
      std::this_thread::sleep_for(std::chrono::microseconds(300));
    }
  });
  Fixture f;
  void *lane = f.open(Fixture::definition(server.url()));
  const Event e = one_call(f, lane, 2);
  CHECK(e.kind == Event::message);
  CHECK(e.text == result(2));
  CHECK(one_call(f, lane, 2).kind == Event::message);
  CHECK(server.connections() == 1);
}

TEST_CASE("responses of 8 MB and large requests are transferred completely") {
  bh_limits limits = bh::testing::limits();
  limits.message_bytes = 32u << 20;
  limits.write_queue_bytes = 64u << 20;
  const std::string big(8u << 20, 'y');
  const int way = GENERATE(0, 1, 2, 3);  // length, chunked, until close, event stream
  Server server([&](const Request &, Peer &peer) {
    const std::string body = result(2, "\"" + big + "\"");
    const std::string head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n";
    if (way == 0) return peer.answer(200, body);
    if (way == 2) return peer.send(head + "\r\n" + body), peer.close();
    if (way == 1) {
      peer.send(head + "Transfer-Encoding: chunked\r\n\r\n");
    } else {
      peer.begin_events();
    }
    const std::string text = way == 3 ? "data: " + body + "\n\n" : body;
    for (std::size_t at = 0; at < text.size(); at += 100'000) peer.event(text.substr(at, 100'000));
    peer.end_events();
  });
  Fixture f(&limits);
  void *lane = f.open(Fixture::definition(server.url()));
  const std::string request = R"({"id":2,"method":"x","params":")" + big + "\"}";
  REQUIRE(f.send(lane, 2, request) == BH_OK);
  REQUIRE(f.wait([&] { return !f.seen.events.empty(); }, 20'000));
  CHECK(f.seen.events[0].kind == Event::message);
  CHECK(f.seen.events[0].text.size() == result(2, "\"\"").size() + big.size());
  CHECK(f.seen.events[0].text == result(2, "\"" + big + "\""));
  CHECK(server.requests()[0].body == request);
}

TEST_CASE("the size of messages, events, heads and the queue is limited") {
  bh_limits limits = bh::testing::limits();
  limits.message_bytes = 1000;
  limits.header_bytes = 600;
  limits.write_queue_bytes = 3u << 20;
  const int way = GENERATE(0, 1, 2, 3);
  Server server([&](const Request &r, Peer &peer) {
    if (r.body.find("\"id\":3") != std::string::npos) return peer.answer(200, result(3));
    const std::string body(2000, ' ');
    if (way == 0) return peer.answer(200, body);
    if (way == 1) return peer.answer(200, "{}", "X-Long: " + body + "\r\n");
    if (way == 2) {
      peer.begin_events();
      peer.event("data: " + body + "\n\n");
      return peer.wait_closed();
    }
    peer.send("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n" + body);
    peer.close();
  });
  Fixture f(&limits);
  void *lane = f.open(Fixture::definition(server.url()));
  const Event e = one_call(f, lane, 2);
  CHECK(e.kind == Event::failed);
  CHECK(e.code == BH_E_LIMIT);
  CHECK(one_call(f, lane, 3).kind == Event::message);
}

TEST_CASE("the queue to a server that does not read is limited") {
  bh_limits limits = bh::testing::limits();
  limits.write_queue_bytes = 1u << 20;
  // Without accept(), connections stay in the listener's backlog, and nothing is read from them.
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t n = sizeof at;
  REQUIRE(::bind(listener, reinterpret_cast<sockaddr *>(&at), n) == 0);
  REQUIRE(::listen(listener, 64) == 0);
  ::getsockname(listener, reinterpret_cast<sockaddr *>(&at), &n);
  Fixture f(&limits);
  void *lane =
      f.open(Fixture::definition("http://127.0.0.1:" + std::to_string(ntohs(at.sin_port)) + "/"));
  const std::string big(20u << 20, 'z');
  REQUIRE(f.send(lane, 1, big) == BH_OK);  // the first message may have any size
  f.host.run_for(20);
  CHECK(f.send(lane, 2, call(2)) == BH_E_LIMIT);
  f.abandon(lane, 1);
  CHECK(f.send(lane, 3, call(3)) == BH_OK);
  f.stop();
  ::close(listener);
}

TEST_CASE("opening and closing 500 lanes leaks no resources") {
  Server server([](const Request &r, Peer &peer) {
    if (!handshake_step(r, peer)) peer.answer(200, result(2));
  });
  const int before = open_descriptors();
  {
    Fixture f;
    const int started = open_descriptors();
    for (int i = 0; i < 500; ++i) {
      void *lane = f.open(Fixture::definition(server.url()), 1);
      REQUIRE(f.handshake(lane));
      REQUIRE(f.close(lane));
      f.seen.events.clear();
    }
    // Closing the lanes closes their connections.
    REQUIRE(f.wait([&] { return server.open() == 0; }));
    CHECK(open_descriptors() <= started);
    CHECK(f.host.watches() == 0);
    f.stop();
    CHECK(f.host.timers() == 0);
    CHECK(f.host.faults().empty());
  }
  REQUIRE(server.open() == 0);
  CHECK(open_descriptors() <= before);
}
