// Tests which message headers are sent and which are rejected.
#include <catch2/catch.hpp>

#include <utility>

#include "fixture.hpp"

using namespace connector_http::testing;

namespace {

using Pairs = std::vector<std::pair<std::string, std::string>>;

bh_status send_with(Fixture &f, void *lane, std::uint64_t exchange, const Pairs &pairs) {
  std::vector<bh_header> headers;
  for (const auto &[name, value] : pairs) headers.push_back({bh::str(name), bh::str(value)});
  const std::string text = call(static_cast<int>(exchange));
  const bh_str part = bh::str(text);
  bh_lane_message message{};
  message.size = sizeof message;
  message.kind = BH_LANE_REQUEST;
  message.exchange = exchange;
  message.part_count = 1;
  message.parts = &part;
  message.headers = headers.data();
  message.header_count = static_cast<std::uint32_t>(headers.size());
  f.error = bh::make_error();
  return f.connector->lane_send(f.plugin->self, lane, &message, &f.error);
}

void answer_calls(const Request &r, Peer &peer) {
  if (handshake_step(r, peer)) return;
  const std::size_t at = r.body.find("\"id\":");
  peer.answer(200, result(std::atoi(&r.body[at + 5])));
}

// Returns the request with this ID as the server received it.
Request request_of(const Server &server, int id) {
  for (const Request &r : server.requests()) {
    if (r.body == call(id)) return r;
  }
  return {};
}

}  // namespace

TEST_CASE("the headers of a message are sent only with that message") {
  Server server(answer_calls);
  Fixture f;
  void *lane = f.open(Fixture::definition(server.url()));
  REQUIRE(f.handshake(lane));
  REQUIRE(send_with(f, lane, 2,
                    {{"MCP-Protocol-Version", "2026-07-28"},
                     {"Mcp-Method", "tools/call"},
                     {"Mcp-Name", "x"},
                     {"Mcp-Param-Region", "=?base64?w6k=?="},
                     {"mcp-param-empty", ""}}) == BH_OK);
  REQUIRE(f.wait_events(1));
  CHECK(f.seen.events[0].text == result(2));
  const Request with = request_of(server, 2);
  CHECK(with.header("mcp-protocol-version") == "2026-07-28");
  CHECK(with.header("mcp-method") == "tools/call");
  CHECK(with.header("mcp-name") == "x");
  CHECK(with.header("mcp-param-region") == "=?base64?w6k=?=");
  CHECK(with.headers.contains("mcp-param-empty"));
  CHECK(with.header("mcp-session-id") == "s-1");
  CHECK(with.header("content-type") == "application/json");

  REQUIRE(f.send(lane, 3, call(3)) == BH_OK);
  REQUIRE(f.wait_events(2));
  const Request without = request_of(server, 3);
  CHECK(without.header("mcp-protocol-version") == "2025-06-18");
  CHECK_FALSE(without.headers.contains("mcp-method"));
}

TEST_CASE("a queued message keeps its headers") {
  Server server(answer_calls);
  Fixture f;
  void *lane = f.open(Fixture::definition(server.url()));
  f.send(lane, 1, R"({"jsonrpc":"2.0","id":1,"method":"initialize","params":{}})", BH_LANE_REQUEST,
         BH_LANE_INITIALIZE);
  REQUIRE(f.wait_events(1));
  f.notify(lane, R"({"jsonrpc":"2.0","method":"notifications/initialized"})");
  REQUIRE(send_with(f, lane, 2, {{"Mcp-Name", "x"}}) == BH_OK);  // waits for the notification
  CHECK(request_of(server, 2).body.empty());
  REQUIRE(f.wait_events(2));
  CHECK(request_of(server, 2).header("mcp-name") == "x");
}

TEST_CASE("headers that a message must not set are rejected, and nothing is sent") {
  Server server(answer_calls);
  Fixture f;
  void *lane = f.open(Fixture::definition(server.url()));
  REQUIRE(f.handshake(lane));
  const auto refused = [&](const std::string &name, const std::string &value,
                           std::string_view why) {
    INFO(name);
    CHECK(send_with(f, lane, 2, {{"Mcp-Method", "tools/call"}, {name, value}}) == BH_E_INVALID);
    CHECK(bh::text(f.error).find(why) != std::string_view::npos);
    CHECK(bh::text(f.error).find("s3cret") == std::string_view::npos);
  };
  refused("Mcp-Name", "x\r\nAuthorization: s3cret",
          R"(the value of header "Mcp-Name" contains a control character)");
  refused("Mcp-Name", std::string("x\0s3cret", 8), "control character");
  refused("Mcp-Name: x\r\nHost", "s3cret", "the name of header 2 is not a token");
  refused("", "s3cret", "the name of header 2 is not a token");
  for (const char *name :
       {"Authorization", "Host", "Content-Length", "content-type", "Transfer-Encoding",
        "Mcp-Session-Id", "mcp-session-id", "Cookie", "Accept", "X-Mcp-Name", "Mcp"}) {
    refused(name, "s3cret", std::string("header \"") + name + "\" cannot be set by a message");
  }
  CHECK(send_with(f, lane, 2, Pairs(BH_HEADER_COUNT, {"Mcp-Param-A", "1"})) == BH_OK);
  CHECK(send_with(f, lane, 3, Pairs(BH_HEADER_COUNT + 1, {"Mcp-Param-A", "1"})) == BH_E_INVALID);
  CHECK(send_with(f, lane, 3, {{"Mcp-Name", std::string(BH_HEADER_BYTES, 'x')}}) == BH_E_INVALID);
  REQUIRE(f.wait_events(1));
  std::size_t calls = 0;
  for (const Request &r : server.requests()) calls += r.body == call(2) || r.body == call(3);
  CHECK(calls == 1);
}
