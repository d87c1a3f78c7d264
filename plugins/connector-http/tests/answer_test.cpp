// Tests invalid and oversized responses to POSTs.
#include <catch2/catch.hpp>
#include <chrono>
#include <fstream>

#include "fixture.hpp"

using namespace connector_http::testing;

namespace {

#ifdef SANITIZED
constexpr bool sanitized = true;
#else
constexpr bool sanitized = false;
#endif

// Returns the size of this process's private writable memory (VmData) in MiB.
std::size_t data_mib() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmData:")) return std::stoul(line.substr(7)) >> 10;
  }
  return 0;
}

}  // namespace

TEST_CASE("a request that the server accepts without a response fails immediately") {
  const int status = GENERATE(202, 204);
  Server server([&](const Request &, Peer &peer) { peer.answer(status, "", "", ""); });
  Fixture f;
  void *lane = f.open(Fixture::definition(server.url()));
  REQUIRE(f.send(lane, 2, call(2)) == BH_OK);
  REQUIRE(f.wait_events(1));
  CHECK(f.seen.events[0].kind == Event::failed);
  CHECK(f.seen.events[0].code == BH_E_PROTOCOL);
  CHECK(f.seen.events[0].text.find("may have run") != std::string::npos);
}

TEST_CASE("a request accepted with 202 may receive its response on the lane's event stream") {
  std::atomic<bool> asked = false;
  Server server([&](const Request &r, Peer &peer) {
    if (r.method == "GET") {
      peer.begin_events();
      while (!asked) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      peer.event("data: " + result(2) + "\n\n");
      return peer.wait_closed();
    }
    if (handshake_step(r, peer)) return;
    peer.answer(202, "", "", "");
    asked = true;
  });
  Fixture f;
  void *lane = f.open(Fixture::definition(server.url()));
  REQUIRE(f.handshake(lane));
  REQUIRE(f.send(lane, 2, call(2)) == BH_OK);
  REQUIRE(f.wait_events(1));
  CHECK(f.seen.events[0].kind == Event::message);
  CHECK(f.seen.events[0].text == result(2));
  REQUIRE(f.close(lane));
}

TEST_CASE("JSON without a JSON-RPC response is delivered, and the request fails") {
  const std::string body =
      GENERATE(as<std::string>{}, R"({"jsonrpc":"2.0","method":"notifications/x"})",
               R"([{"jsonrpc":"2.0","method":"notifications/x"}])");
  const bool at_once = GENERATE(true, false);
  Server server([&](const Request &, Peer &peer) {
    if (at_once) return peer.answer(200, body);
    peer.send(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
        "Transfer-Encoding: chunked\r\n\r\n");
    peer.event(body);
    peer.end_events();
  });
  Fixture f;
  void *lane = f.open(Fixture::definition(server.url()));
  REQUIRE(f.send(lane, 2, call(2)) == BH_OK);
  REQUIRE(f.wait_events(2));
  CHECK(f.seen.events[0].kind == Event::message);
  CHECK(f.seen.events[1].kind == Event::failed);
  CHECK(f.seen.events[1].exchange == 2);
  CHECK(f.seen.events[1].code == BH_E_PROTOCOL);
}

TEST_CASE("a connection is reused after the chunked response to a notification") {
  Server server([](const Request &r, Peer &peer) {
    if (r.body.find("initialized") != std::string::npos) {
      peer.send("HTTP/1.1 202 Accepted\r\nTransfer-Encoding: chunked\r\n\r\n");
      // This delay makes the client receive the next bytes separately.
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      return peer.send("0\r\n\r\n");
    }
    if (!handshake_step(r, peer)) peer.answer(200, result(2));
  });
  Fixture f;
  void *lane = f.open(Fixture::definition(server.url()));
  REQUIRE(f.handshake(lane));
  REQUIRE(f.send(lane, 2, call(2)) == BH_OK);  // waits for the response to `initialized`
  REQUIRE(f.wait_events(1));
  for (const Request &r : server.requests()) {
    if (r.method == "POST") CHECK(r.connection == 1);
  }
  REQUIRE(f.close(lane));
}

TEST_CASE("reading an endless response to a notification is limited") {
  std::atomic<bool> closed = false;
  Server server([&](const Request &, Peer &peer) {
    peer.send("HTTP/1.1 202 Accepted\r\nTransfer-Encoding: chunked\r\n\r\n");
    peer.event(std::string(100'000, 'x'));
    peer.wait_closed();
    closed = true;
  });
  Fixture f;
  void *lane = f.open(Fixture::definition(server.url()));
  REQUIRE(f.notify(lane, R"({"jsonrpc":"2.0","method":"notifications/x"})") == BH_OK);
  CHECK(f.wait([&] { return closed.load(); }));
  CHECK(f.seen.events.empty());
}

TEST_CASE("an announced length does not allocate memory") {
  if (sanitized) return;  // the sanitizers map more memory
  bh_limits limits = bh::testing::limits();
  limits.message_bytes = 64u << 20;
  constexpr int calls = 48;
  std::atomic<int> begun = 0;
  Server server([&](const Request &r, Peer &peer) {
    if (r.body == call(999)) return peer.answer(200, result(999));
    peer.send(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
        "Content-Length: 33554432\r\n\r\n{");
    ++begun;
    peer.wait_closed();
  });
  Fixture f(&limits);
  void *lane = f.open(Fixture::definition(server.url()));
  const std::size_t before = data_mib();
  for (int i = 1; i <= calls; ++i) {
    REQUIRE(f.send(lane, static_cast<std::uint64_t>(i), call(i)) == BH_OK);
  }
  REQUIRE(f.wait([&] { return begun == calls; }));
  REQUIRE(f.send(lane, 999, call(999)) == BH_OK);
  REQUIRE(f.wait_events(1));
  f.host.run_for(20);
  // The responses announce 1536 MiB in total. The stacks of the server's threads account for 384
  // MiB of the increase.
  CHECK(data_mib() - before < 768);
  f.stop();
}
