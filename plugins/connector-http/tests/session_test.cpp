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

namespace {

const std::string initialize_text = R"({"jsonrpc":"2.0","id":9,"method":"initialize","params":{}})";
const std::string unsupported =
    R"({"jsonrpc":"2.0","id":9,"error":{"code":-32022,"message":"no","data":{}}})";
const std::string discover_text =
    R"({"jsonrpc":"2.0","id":1,"method":"server/discover","params":{}})";

bool contains(const std::vector<Event> &events, const std::string &text) {
  return std::any_of(events.begin(), events.end(), [&](const Event &e) { return e.text == text; });
}

}  // namespace

TEST_CASE("a late response to server/discover undoes initialize, which was sent as well") {
  std::atomic<bool> discovered = false, get_seen = false, get_may_end = false;
  std::atomic<int> gets = 0;
  Server server([&](const Request &r, Peer &peer) {
    const auto wait = [](const std::atomic<bool> &flag) {
      for (int i = 0; i < 500 && !flag; ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
      }
    };
    if (r.method == "GET") {
      ++gets;
      get_seen = true;
      wait(get_may_end);
      return peer.answer(405, "");
    }
    if (r.body == initialize_text) return peer.answer(400, unsupported);
    if (r.body == discover_text) {
      wait(discovered);
      return peer.answer(200, result(1));
    }
    peer.answer(200, result(r.body == call(2) ? 2 : 3));
  });
  Fixture f;
  void *lane = f.open(Fixture::definition(server.url()));
  f.seen.on_event = [&](const Event &e) {  // as the host does
    if (e.text != result(1)) return;
    f.abandon(lane, 9);
    f.ready(lane, "2026-07-28");
    CHECK(f.send(lane, 2, call(2)) == BH_OK);
    CHECK(f.send(lane, 3, call(3)) == BH_OK);
  };
  REQUIRE(f.send(lane, 1, discover_text) == BH_OK);
  REQUIRE(f.send(lane, 9, initialize_text, BH_LANE_REQUEST, BH_LANE_INITIALIZE) == BH_OK);
  REQUIRE(f.wait([&] { return get_seen.load(); }));
  discovered = true;
  SECTION("while HTTP+SSE is still searched for") {
    REQUIRE(f.wait_events(3));
    get_may_end = true;
  }
  SECTION("and the GET ends immediately afterwards") {
    REQUIRE(f.wait_events(1));
    get_may_end = true;
    REQUIRE(f.wait_events(3));
  }
  CHECK(contains(f.seen.events, result(2)));
  CHECK(contains(f.seen.events, result(3)));
  CHECK_FALSE(contains(f.seen.events, unsupported));
  for (const Request &r : server.requests()) CHECK_FALSE(r.headers.contains("mcp-session-id"));
  get_may_end = true;
  REQUIRE(f.close(lane));
  CHECK(gets == 1);
}

TEST_CASE("the session of an initialize request that was sent as well is not used") {
  std::atomic<bool> session = false;
  Server server([&](const Request &r, Peer &peer) {
    if (r.body == initialize_text) {
      peer.begin_events("Mcp-Session-Id: s-1\r\n");
      peer.event(": no response yet\n\n");
      session = true;
      return peer.wait_closed();
    }
    if (r.body == discover_text) {
      for (int i = 0; i < 500 && !session; ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(500));  // for the head of the response
      return peer.answer(200, result(1));
    }
    peer.answer(404, R"({"jsonrpc":"2.0","id":2,"error":{"code":-32601,"message":"no"}})");
  });
  Fixture f;
  void *lane = f.open(Fixture::definition(server.url()));
  REQUIRE(f.send(lane, 1, discover_text) == BH_OK);
  REQUIRE(f.send(lane, 9, initialize_text, BH_LANE_REQUEST, BH_LANE_INITIALIZE) == BH_OK);
  REQUIRE(f.wait_events(1));
  f.abandon(lane, 9);
  f.ready(lane, "2026-07-28");
  REQUIRE(f.send(lane, 2, call(2)) == BH_OK);
  REQUIRE(f.wait_events(2));
  CHECK(f.seen.events[1].kind == Event::message);
  CHECK(f.seen.events[1].text.find("-32601") != std::string::npos);
  CHECK(f.count(Event::down, 1) == 0);
  const auto deletes = [&server] {
    const std::vector<Request> all = server.requests();
    return std::count_if(all.begin(), all.end(), [](const Request &r) {
      return r.method == "DELETE" && r.header("mcp-session-id") == "s-1" &&
             !r.headers.contains("mcp-protocol-version");
    });
  };
  REQUIRE(f.wait([&] { return deletes() == 1; }));
  for (const Request &r : server.requests()) {
    CHECK((r.method == "POST") == !r.headers.contains("mcp-session-id"));
  }
  REQUIRE(f.close(lane));
  CHECK(deletes() == 1);
}

TEST_CASE("a batch ends with the response to server/discover that closes its HTTP+SSE stream") {
  // The batch exceeds the buffers that the parser keeps and arrives in pieces, so the parser owns
  // the text.
  const std::string padding(100'000, 'x');
  const std::string batch = "[" + result(1, R"({"p":")" + padding + "\"}") + "," +
                            result(9, R"({"p":")" + padding + "\"}") + "," + result(2) + "]";
  std::atomic<bool> endpoint_used = false;
  Server server([&](const Request &r, Peer &peer) {
    if (r.method == "GET") {
      peer.begin_events();
      peer.event("event: endpoint\ndata: /messages\n\n");
      for (int i = 0; i < 500 && !endpoint_used; ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
      }
      const std::string text = "data: " + batch + "\n\n";
      const std::size_t step = text.size() / 3;
      for (std::size_t from = 0; from < text.size(); from += step) {
        peer.event(text.substr(from, step));
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
      }
      return peer.wait_closed();
    }
    if (r.target == "/messages") {
      peer.answer(202, "", "", "");
      endpoint_used = true;
      return;
    }
    if (r.body == discover_text) return peer.wait_closed();
    if (r.body == initialize_text) return peer.answer(404, "");
    peer.answer(200, result(3));
  });
  Fixture f;
  void *lane = f.open(Fixture::definition(server.url()));
  f.seen.on_event = [&](const Event &e) {
    if (e.kind != Event::message || f.seen.events.size() != 1) return;
    f.abandon(lane, 1);
    f.abandon(lane, 9);
    f.ready(lane, "2026-07-28");
    CHECK(f.send(lane, 3, call(3)) == BH_OK);
  };
  REQUIRE(f.send(lane, 1, discover_text) == BH_OK);
  REQUIRE(f.send(lane, 9, initialize_text, BH_LANE_REQUEST, BH_LANE_INITIALIZE) == BH_OK);
  REQUIRE(f.wait_events(2));
  CHECK(f.seen.events[0].text == result(1, R"({"p":")" + padding + "\"}"));
  CHECK(f.seen.events[0].exchange == 0);
  CHECK(f.seen.events[1].text == result(3));
  CHECK(f.seen.events[1].exchange == 3);
  CHECK(f.seen.events.size() == 2);
  CHECK(server.requests().back().target == "/mcp");
  REQUIRE(f.close(lane));
}

TEST_CASE("messages that wait while HTTP+SSE is searched for are sent if there is none") {
  std::atomic<bool> get_may_end = false;
  Server server([&](const Request &r, Peer &peer) {
    if (r.method == "GET") {
      for (int i = 0; i < 500 && !get_may_end; ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
      }
      return peer.answer(405, "");
    }
    if (r.body == initialize_text) return peer.answer(400, unsupported);
    peer.answer(200, result(r.body == call(2) ? 2 : 3));
  });
  Fixture f;
  void *lane = f.open(Fixture::definition(server.url()));
  REQUIRE(f.send(lane, 9, initialize_text, BH_LANE_REQUEST, BH_LANE_INITIALIZE) == BH_OK);
  REQUIRE(f.wait([&] { return server.requests().size() == 2; }));
  for (const int id : {2, 3})
    REQUIRE(f.send(lane, static_cast<std::uint64_t>(id), call(id)) == BH_OK);
  get_may_end = true;
  REQUIRE(f.wait_events(3));
  CHECK(f.seen.events[0].text == unsupported);
  CHECK(f.seen.events[0].exchange == 9);
  CHECK(contains(f.seen.events, result(2)));
  CHECK(contains(f.seen.events, result(3)));
  REQUIRE(f.close(lane));
}

TEST_CASE("a status that says nothing about the revision fails an opening request") {
  struct Case {
    int status;
    bh_status code;
  };
  const auto [status, code] =
      GENERATE(Case{401, BH_E_AUTH}, Case{403, BH_E_DENIED}, Case{429, BH_E_UNAVAILABLE},
               Case{500, BH_E_IO}, Case{503, BH_E_IO}, Case{400, BH_OK}, Case{404, BH_OK});
  INFO(status);
  Server server([answer_status = status](const Request &r, Peer &peer) {
    const int id = r.body == discover_text ? 1 : r.body == initialize_text ? 9 : 2;
    if (r.method == "GET") return peer.answer(405, "");
    peer.answer(answer_status, R"({"jsonrpc":"2.0","id":)" + std::to_string(id) +
                                   R"(,"error":{"code":-32600,"message":"no"}})");
  });
  Fixture f;
  void *lane = f.open(Fixture::definition(server.url()));
  REQUIRE(f.send(lane, 1, discover_text) == BH_OK);
  REQUIRE(f.wait_events(1));
  REQUIRE(f.send(lane, 9, initialize_text, BH_LANE_REQUEST, BH_LANE_INITIALIZE) == BH_OK);
  REQUIRE(f.wait_events(2));
  for (const Event &e : f.seen.events) {
    CHECK(e.kind == (code == BH_OK ? Event::message : Event::failed));
    CHECK(e.code == code);
  }
  // Later requests get the server's error.
  f.ready(lane, "2026-07-28");
  REQUIRE(f.send(lane, 2, call(2)) == BH_OK);
  REQUIRE(f.wait_events(3));
  CHECK(f.seen.events[2].kind == Event::message);
  REQUIRE(f.close(lane));
}
