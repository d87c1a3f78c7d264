// Tests requests without a session, and the headers that the host receives.
#include "mcp_headers.hpp"
#include "testing.hpp"

using namespace transport_http::testing;

namespace {

using Lines = std::vector<std::string>;

std::string many_headers(std::size_t n) {
  std::string out;
  for (std::size_t i = 0; i < n; ++i) out += "Mcp-Param-" + std::to_string(i) + ": 1\r\n";
  return out;
}

}  // namespace

TEST_CASE("a request without a session is delivered with its peer and answered") {
  Rig rig;
  Client client(rig);
  const Response now = client.request(post(rig, "now"));
  CHECK(now.status == 200);
  CHECK(now.body == R"({"result":"ok"})");
  CHECK(now.field("Mcp-Session-Id").empty());
  REQUIRE(rig.delivered.size() == 1);
  CHECK(rig.delivered[0].session == 0);
  CHECK(rig.delivered[0].principal == "local");
  CHECK(rig.open.empty());

  CHECK(client.request(post(rig, "status-400")).status == 400);
  CHECK(client.request(post(rig, "notify")).status == 202);

  client.send(post(rig, "later"));
  REQUIRE(client.wait([&] { return rig.delivered.size() == 4; }));
  CHECK(rig.delivered[3].stream != rig.delivered[0].stream);
  CHECK(rig.answer(rig.delivered[3], "{\"later\":1}") == BH_OK);
  CHECK(client.response().body == "{\"later\":1}");
  CHECK(rig.answer(rig.delivered[3], "{}") == BH_STALE);
  CHECK(rig.gone.empty());
  CHECK(rig.last_session == 0);
}

TEST_CASE("GET and DELETE of a revision without sessions are not allowed") {
  Rig rig;
  Client client(rig);
  const std::string id = initialize(rig, client);
  for (const std::string method : {"GET", "DELETE"}) {
    for (const std::string &session : {std::string(), id}) {
      for (const std::string revision : {"2026-07-28", "2027-01-01"}) {
        INFO(method << " " << session << " " << revision);
        const std::string header = "MCP-Protocol-Version: " + revision + "\r\n";
        const Response r = client.request(get(rig, session, header, "/mcp", method));
        CHECK(r.status == 405);
        CHECK(r.field("Allow") == "POST, OPTIONS");
      }
    }
    CHECK(client.request(get(rig, {}, {}, "/mcp", method)).status == 400);
    const std::string old = "MCP-Protocol-Version: 2025-11-25\r\n";
    CHECK(client.request(get(rig, {}, old, "/mcp", method)).status == 400);
  }
  // The session still exists.
  CHECK(client.request(get(rig, id, {}, "/mcp", "DELETE")).status == 204);
}

TEST_CASE("events of a request without a session are sent before its response") {
  Rig rig;
  Client client(rig);
  client.send(post(rig, "later"));
  REQUIRE(client.wait([&] { return rig.delivered.size() == 1; }));
  CHECK(rig.event(rig.delivered[0], "{\"event\":1}") == BH_OK);
  CHECK(rig.answer(rig.delivered[0], "{\"answer\":2}") == BH_OK);
  const Response r = client.response();
  CHECK(r.field("Content-Type") == "text/event-stream");
  CHECK(r.body.find("{\"event\":1}") < r.body.find("{\"answer\":2}"));
  CHECK(r.body.find("id:") == std::string::npos);
  CHECK(client.request(post(rig, "now")).status == 200);  // on the same connection
}

TEST_CASE("the host is notified when the connection of a request without a session is closed") {
  Rig rig;
  Client client(rig);
  client.send(post(rig, "later"));
  REQUIRE(client.wait([&] { return rig.delivered.size() == 1; }));
  client.close();
  REQUIRE(rig.host.run_until([&] { return !rig.gone.empty(); }, 20'000));
  CHECK(rig.gone ==
        std::vector<std::pair<bh_session, std::uint64_t>>{{0, rig.delivered[0].stream}});
  CHECK(rig.answer(rig.delivered[0], "{}") == BH_STALE);

  // Stopping the transport also notifies the host.
  Client other(rig);
  other.send(post(rig, "later"));
  REQUIRE(other.wait([&] { return rig.delivered.size() == 2; }));
  rig.plugin->stop(rig.plugin->self);
  REQUIRE(rig.gone.size() == 2);
  CHECK(rig.gone[1].second == rig.delivered[1].stream);
}

TEST_CASE("a request without a session that is answered late is converted to an event stream") {
  Rig rig(R"({"listen":"127.0.0.1:0","keep_alive_ms":100})");
  Client client(rig);
  client.send(post(rig, "later"));
  REQUIRE(client.wait_for("\r\n:\n\n"));  // a comment
  REQUIRE(rig.delivered.size() == 1);
  CHECK(rig.answer(rig.delivered[0], "{\"answer\":2}") == BH_OK);
  const Response r = client.response();
  CHECK(r.field("Content-Type") == "text/event-stream");
  CHECK(r.has("data: {\"answer\":2}"));
  CHECK(rig.gone.empty());
}

TEST_CASE("a request without a session is cancelled if its client reads too slowly") {
  bh_limits limits = test_limits();
  limits.write_queue_bytes = 64u << 10;
  Rig rig(R"({"listen":"127.0.0.1:0"})", limits);
  Client client(rig, 4096);
  client.send(post(rig, "later"));
  REQUIRE(rig.host.run_until([&] { return rig.delivered.size() == 1; }, 20'000));
  const std::string large(1u << 20, 'x');
  bh_status status = BH_OK;
  for (int i = 0; i < 64 && status == BH_OK; ++i) status = rig.event(rig.delivered[0], large);
  CHECK(status == BH_STALE);
  REQUIRE(rig.host.run_until([&] { return !rig.gone.empty(); }, 20'000));
  CHECK(rig.gone[0].second == rig.delivered[0].stream);
  CHECK(rig.answer(rig.delivered[0], "{}") == BH_STALE);
  CHECK(rig.gone.size() == 1);
}

TEST_CASE("the host rejects requests without a session, or does not support them") {
  Rig rig;
  Client client(rig);
  rig.refusal = BH_E_LIMIT;
  const Response limit = client.request(post(rig, "now"));
  CHECK(limit.status == 503);
  CHECK(limit.field("Retry-After") == "5");
  rig.refusal = BH_E_INVALID;
  CHECK(client.request(post(rig, "now")).status == 500);
  CHECK(rig.delivered.empty());
  rig.refusal = BH_E_UNSUPPORTED;
  CHECK(client.request(post(rig, "now")).status == 200);
  REQUIRE(rig.delivered.size() == 1);
  CHECK(rig.delivered[0].session != 0);
  CHECK(rig.open.empty());  // the stream ended with its request
}

TEST_CASE("the host receives only the headers that MCP defines") {
  Rig rig;
  Client client(rig);
  const std::string id = initialize(rig, client);
  const std::string more =
      "MCP-Protocol-Version: 2025-06-18\r\nmcp-method:  tools/call \r\nAuthorization: Bearer x\r\n"
      "Mcp-Param-Region: \xFF\"eu\r\nMcp-Param-Region: us\r\nMcp-Other: 1\r\nX-Mcp-Name: 1\r\n"
      "Mcp-Name: =?base64?eA==?=\r\n";
  const Lines shown = {"MCP-Protocol-Version: 2025-06-18", "mcp-method: tools/call",
                       "Mcp-Param-Region: \xFF\"eu", "Mcp-Param-Region: us",
                       "Mcp-Name: =?base64?eA==?="};
  CHECK(client.request(post(rig, "now", id, more)).status == 200);
  CHECK(rig.delivered.back().session != 0);
  CHECK(rig.delivered.back().headers == shown);
  CHECK(client.request(post(rig, "now", {}, more)).status == 200);
  CHECK(rig.delivered.back().session == 0);
  CHECK(rig.delivered.back().headers == shown);
  CHECK(client.request(post(rig, "now")).status == 200);
  CHECK(rig.delivered.back().headers.empty());
}

TEST_CASE(
    "a request with too many headers is rejected, or forwarded without them if it has a session") {
  bh_limits limits = test_limits();
  limits.header_bytes = 128u << 10;
  Rig rig(R"({"listen":"127.0.0.1:0"})", limits);
  Client client(rig);
  const std::string id = initialize(rig, client);
  const std::size_t before = rig.delivered.size();
  const std::string most = many_headers(BH_HEADER_COUNT), more = many_headers(BH_HEADER_COUNT + 1);
  const std::string large = "Mcp-Name: " + std::string(BH_HEADER_BYTES, 'x') + "\r\n";
  CHECK(client.request(post(rig, "now", {}, most)).status == 200);
  CHECK(rig.delivered.back().headers.size() == BH_HEADER_COUNT);
  CHECK(client.request(post(rig, "now", {}, more)).status == 431);
  CHECK(client.request(post(rig, "now", {}, large)).status == 431);
  CHECK(rig.delivered.size() == before + 1);
  for (const std::string &headers : {more, large}) {
    CHECK(client.request(post(rig, "now", id, headers)).status == 200);
    CHECK(rig.delivered.back().headers == Lines{"not shown"});
  }
}
