// Tests lanes that use the http-client plugin with a proxy.
#include <catch2/catch.hpp>

#include "bulkhead/abi/ext/draft/http.h"
#include "fixture.hpp"

extern "C" const bh_entry *bh_static_entry_HttpClient(void);

using namespace connector_http::testing;

namespace {

// This test acts as the host: the functions in `passed_on` call those of the http-client plugin.
const bh_plugin *service = nullptr;
const bh_http_service *functions() {
  return static_cast<const bh_http_service *>(service->get_ext(service->self, BH_EXT_HTTP_SERVICE));
}
const bh_host_http passed_on{
    sizeof(bh_host_http), 0,
    [](void *, const bh_http_request *r, const bh_http_handler *h, void *user, bh_http_id *out,
       bh_error *e) { return functions()->start(service->self, r, h, user, out, e); },
    [](void *, bh_http_id id) { return functions()->cancel(service->self, id); }};

struct ServiceFixture : Fixture {
  explicit ServiceFixture(const std::string &proxy) {
    ::setenv("http_proxy", proxy.c_str(), 1);
    ::setenv("no_proxy", "", 1);
    ::setenv("NO_PROXY", "", 1);
    REQUIRE(bh_static_entry_HttpClient()->create("http-client", host.host(), &service, &error) ==
            BH_OK);
    REQUIRE(service->configure(service->self, bh::str("{}"), &error) == BH_OK);
    REQUIRE(service->start(service->self, &error) == BH_OK);
    host.add_ext(BH_EXT_HOST_HTTP, &passed_on);
  }
  ~ServiceFixture() {
    stop();
    service->stop(service->self);
    CHECK(host.watches() == 0);
    CHECK(host.timers() == 0);
    CHECK(host.faults().empty());
    service->destroy(service->self);
    ::unsetenv("http_proxy");
  }
};

const std::string url = "http://mcp.invalid/mcp";

}  // namespace

TEST_CASE("JSON, event streams, sessions and headers work through the service") {
  Server server([](const Request &r, Peer &peer) {
    if (handshake_step(r, peer)) return;
    if (r.body.find("\"id\":2") != std::string::npos) return peer.answer(200, result(2));
    peer.begin_events();
    peer.event("data: {\"method\":\"x\"}\n\ndata: " + result(3) + "\n\n");
    peer.end_events();
  });
  ServiceFixture f(server.url(""));
  void *lane = f.open(Fixture::definition(url, R"(,"headers":{"Authorization":"Bearer t"})"));
  REQUIRE(f.handshake(lane));
  REQUIRE(f.send(lane, 2, call(2)) == BH_OK);
  REQUIRE(f.wait_events(1));
  CHECK(f.seen.events[0].exchange == 2);
  CHECK(f.seen.events[0].text == result(2));
  REQUIRE(f.send(lane, 3, call(3)) == BH_OK);
  REQUIRE(f.wait_events(3));
  CHECK(f.seen.events[2].text == result(3));
  REQUIRE(f.close(lane));
  for (const Request &r : server.requests()) {
    CHECK(r.target == url);
    CHECK(r.header("authorization") == "Bearer t");
    if (r.body == call(3)) {
      CHECK(r.header("mcp-session-id") == "s-1");
      CHECK(r.header("accept") == "application/json, text/event-stream");
      CHECK(r.header("mcp-protocol-version") == "2025-06-18");
    }
  }
}

TEST_CASE("the response to a notification is read completely, and its connection is reused") {
  Server server([](const Request &r, Peer &peer) {
    if (r.body.find("initialized") != std::string::npos) {
      peer.send("HTTP/1.1 202 Accepted\r\nTransfer-Encoding: chunked\r\n\r\n");
      return peer.send("0\r\n\r\n");
    }
    if (!handshake_step(r, peer)) peer.answer(200, result(2));
  });
  ServiceFixture f(server.url(""));
  void *lane = f.open(Fixture::definition(url));
  REQUIRE(f.handshake(lane));
  REQUIRE(f.send(lane, 2, call(2)) == BH_OK);  // waits for the response to `initialized`
  REQUIRE(f.wait_events(1));
  CHECK(f.seen.events[0].text == result(2));
  for (const Request &r : server.requests()) {
    if (r.method == "POST") CHECK(r.connection == 1);
  }
  REQUIRE(f.close(lane));
}

TEST_CASE("failures are reported and a lane can be closed through the service") {
  Server server([](const Request &r, Peer &peer) {
    if (handshake_step(r, peer)) return;
    if (r.body.find("\"id\":2") != std::string::npos) {
      return peer.answer(401, "", "WWW-Authenticate: Bearer\r\n", "");
    }
    if (r.body.find("\"id\":3") != std::string::npos) return peer.wait_closed();
    peer.answer(404, "");
  });
  ServiceFixture f(server.url(""));
  void *lane = f.open(Fixture::definition(url));
  REQUIRE(f.handshake(lane));
  REQUIRE(f.send(lane, 2, call(2)) == BH_OK);
  REQUIRE(f.wait_events(1));
  CHECK(f.seen.events[0].code == BH_E_AUTH);
  REQUIRE(f.send(lane, 3, call(3)) == BH_OK);
  REQUIRE(f.wait([&] {  // the GET has another connection and may be the last request
    const auto all = server.requests();
    return std::any_of(all.begin(), all.end(), [](auto &r) { return r.body == call(3); });
  }));
  f.abandon(lane, 3);
  REQUIRE(f.send(lane, 4, call(4)) == BH_OK);
  REQUIRE(f.wait([&] { return f.count(Event::down, 1) == 1; }));
  CHECK(f.seen.events.back().code == BH_E_SESSION_LOST);
  REQUIRE(f.close(lane));
}

TEST_CASE("a lane with in-flight calls may be closed in an event callback") {
  Server server([](const Request &r, Peer &peer) {
    if (handshake_step(r, peer)) return;
    peer.begin_events();
    peer.event("data: {\"method\":\"x\"}\n\ndata: {\"method\":\"y\"}\n\n");
    peer.wait_closed();
  });
  ServiceFixture f(server.url(""));
  void *lane = f.open(Fixture::definition(url));
  REQUIRE(f.handshake(lane));
  f.seen.on_event = [&](const Event &e) {
    if (e.kind == Event::message) f.connector->lane_close(f.plugin->self, lane);
  };
  REQUIRE(f.send(lane, 2, call(2)) == BH_OK);
  REQUIRE(f.wait([&] { return f.count(Event::closed, 1) == 1; }));
  CHECK(f.count(Event::message, 1) == 1);
}
