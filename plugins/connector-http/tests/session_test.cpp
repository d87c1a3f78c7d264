// Tests lost sessions and sessions whose `initialize` response arrives on an event stream.
#include <catch2/catch.hpp>
#include <chrono>

#include "fixture.hpp"

using namespace connector_http::testing;

TEST_CASE(
    "initialized is sent alone even if the stream with the response to initialize stays open") {
  std::atomic<bool> initialized = false, early = false;
  Server server([&](const Request &r, Peer &peer) {
    if (r.body.find("\"initialize\"") != std::string::npos) {
      peer.begin_events("Mcp-Session-Id: s-1\r\n");
      peer.event("data: " + result(1) + "\n\n");
      return peer.wait_closed();
    }
    if (r.body.find("notifications/initialized") != std::string::npos) {
      // This delay gives other requests the chance to overtake the notification.
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      initialized = true;
    } else if (!initialized) {
      early = true;
    }
    if (!handshake_step(r, peer)) peer.answer(200, result(2));
  });
  Fixture f;
  void *lane = f.open(Fixture::definition(server.url()));
  f.seen.on_event = [&](const Event &e) {  // runs within the event callback, as in the host
    if (e.text != result(1)) return;
    f.notify(lane, R"({"jsonrpc":"2.0","method":"notifications/initialized"})");
    f.ready(lane);
    CHECK(f.send(lane, 2, call(2)) == BH_OK);
  };
  REQUIRE(f.send(lane, 1, R"({"jsonrpc":"2.0","id":1,"method":"initialize","params":{}})",
                 BH_LANE_REQUEST, BH_LANE_INITIALIZE) == BH_OK);
  REQUIRE(f.wait_events(2));
  CHECK(f.seen.events[1].text == result(2));
  CHECK_FALSE(early);
  REQUIRE(f.close(lane));
}

TEST_CASE("a JSON-RPC error with status 400 is delivered as the response, regardless of its text") {
  const std::string body =
      R"({"jsonrpc":"2.0","id":2,"error":{"code":-32602,"message":"no such session: abc"}})";
  Server server([&](const Request &r, Peer &peer) {
    if (handshake_step(r, peer)) return;
    if (r.body == call(2)) return peer.answer(400, body);
    peer.answer(200, result(3));
  });
  Fixture f;
  void *lane = f.open(Fixture::definition(server.url()));
  REQUIRE(f.handshake(lane));
  REQUIRE(f.send(lane, 2, call(2)) == BH_OK);
  REQUIRE(f.wait_events(1));
  CHECK(f.seen.events[0].kind == Event::message);
  CHECK(f.seen.events[0].text == body);
  REQUIRE(f.send(lane, 3, call(3)) == BH_OK);  // the lane still works
  REQUIRE(f.wait_events(2));
  CHECK(f.seen.events[1].text == result(3));
  REQUIRE(f.close(lane));
}

TEST_CASE("if a session is lost during a resumption, the call may have been executed") {
  Server server([&](const Request &r, Peer &peer) {
    if (r.method == "GET" && !r.header("last-event-id").empty()) return peer.answer(404, "");
    if (handshake_step(r, peer)) return;
    peer.begin_events();
    peer.event("id: 1\nretry: 20\ndata:\n\n");
    peer.end_events();
  });
  Fixture f;
  void *lane = f.open(Fixture::definition(server.url()));
  REQUIRE(f.handshake(lane));
  REQUIRE(f.send(lane, 2, call(2)) == BH_OK);
  REQUIRE(f.wait_events(2));
  CHECK(f.seen.events[0].kind == Event::failed);
  CHECK(f.seen.events[0].code == BH_E_IO);
  CHECK(f.seen.events[0].text.find("may have run") != std::string::npos);
  CHECK(f.seen.events[1].kind == Event::down);
  CHECK(f.seen.events[1].code == BH_E_SESSION_LOST);
  REQUIRE(f.close(lane));
}
