// Tests servers of both protocol generations in the router.
#include "route/server_edge.hpp"

#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <vector>

#include "bulkhead/cpp/basics.hpp"
#include "reactor/reactor.hpp"
#include "route/router.hpp"

using namespace bulkhead;

namespace {

// Router fixture with a fake connector whose server responds immediately.
struct World : private ClientEnd {
  Profile profile;
  std::unique_ptr<Reactor> reactor = *Reactor::create();
  std::vector<std::string> sent;
  std::string log, got, revision;
  bh_lane lane = 0;
  std::unique_ptr<Router> router;
  bh_session session = 0;

  static World &of(void *self) { return *static_cast<World *>(self); }
  static const bh_connector table;

  void take(const bh_lane_message &message) {
    std::string &text = sent.emplace_back();
    for (std::uint32_t i = 0; i < message.part_count; ++i) text += bh::view(message.parts[i]);
    if (message.kind != BH_LANE_REQUEST) return;
    const std::string_view method = mcp::member(text, "method");
    std::string result = R"({"content":[]})";
    if (method == R"("server/discover")")
      result = R"({"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}})";
    if (method == R"("initialize")")
      result = R"({"protocolVersion":"2025-06-18","capabilities":{"tools":{}}})";
    if (method == R"("tools/list")") result = R"({"tools":[{"name":"x","inputSchema":{}}]})";
    router->parts().servers.wires.message(lane, message.exchange,
                                          R"({"jsonrpc":"2.0","id":)" +
                                              std::to_string(message.exchange) + R"(,"result":)" +
                                              result + "}");
  }

  explicit World(ProtocolPin protocol) {
    RouterHooks hooks;
    hooks.log = [this](std::int32_t, std::string_view text) { log.append(text).append("\n"); };
    router = std::make_unique<Router>(profile, *reactor, std::move(hooks));
    ServerDef def;
    def.name = "s";
    def.protocol = protocol;
    auto made = std::make_unique<Upstream>(router->parts().servers.lanes, def);
    made->connector = &table;
    made->self = this;
    router->parts().servers.list.add(std::move(made));
    router->start(true);
    bh_peer peer{};
    peer.size = sizeof peer;
    peer.flags = BH_PEER_HANDSHAKE_OPTIONAL;
    REQUIRE(router->parts().clients.sessions.open(*this, peer, &session, nullptr) == BH_OK);
  }
  ~World() override {
    router->parts().clients.sessions.end_all("the end");
    router->close_lanes();
  }
  std::string call(const std::string &params) {
    sent.clear();
    got.clear();
    bh_delivery delivery{};
    delivery.size = sizeof delivery;
    router->parts().clients.sessions.deliver(
        session, 0, R"({"jsonrpc":"2.0","id":5,"method":"tools/call","params":)" + params + "}",
        &delivery);
    return sent.empty() ? "" : sent.back();
  }

 private:
  void send(const bh_outgoing &message) override {
    for (std::uint32_t i = 0; i < message.part_count; ++i) got += bh::view(message.parts[i]);
  }
  void session_ended(bh_session, std::string_view) override {}
};

const bh_connector World::table{
    sizeof(bh_connector),
    0,
    [](void *self, bh_lane lane, const bh_lane_info *, void **out, bh_error *) -> bh_status {
      World::of(self).lane = lane;
      *out = self;
      return BH_OK;
    },
    [](void *self, void *, const bh_lane_message *message, bh_error *) -> bh_status {
      World::of(self).take(*message);
      return BH_OK;
    },
    [](void *self, void *, bh_str revision) { World::of(self).revision = bh::view(revision); },
    [](void *, void *, std::uint64_t) {},
    [](void *self, void *) {
      World::of(self).router->parts().servers.wires.closed(World::of(self).lane);
    },
};

std::string member(std::string_view text, std::initializer_list<std::string_view> path) {
  for (const std::string_view name : path) text = mcp::member(text, name);
  return std::string(text);
}

}  // namespace

TEST_CASE("a session-based server is initialized, and requests are forwarded unchanged") {
  World w(ProtocolPin::v2025_11_25);
  REQUIRE(w.sent.size() >= 3);
  CHECK(member(w.sent[0], {"method"}) == R"("initialize")");
  CHECK(member(w.sent[0], {"params", "protocolVersion"}) == R"("2025-11-25")");
  CHECK(member(w.sent[1], {"method"}) == R"("notifications/initialized")");
  CHECK(w.revision == "2025-06-18");
  CHECK(member(w.call(R"({"name":"s__x","arguments":{}})"), {"params"}) ==
        R"({"name":"x","arguments":{}})");
  CHECK(w.got.find(R"("id":5)") != std::string::npos);
}

TEST_CASE("a stateless server gets server/discover, and each request contains its revision") {
  World w(ProtocolPin::v2026_07_28);
  REQUIRE(w.sent.size() == 2);
  CHECK(member(w.sent[0], {"method"}) == R"("server/discover")");
  CHECK(member(w.sent[1], {"method"}) == R"("tools/list")");
  CHECK(w.revision == "2026-07-28");
  const std::string_view version = "io.modelcontextprotocol/protocolVersion";
  CHECK(member(w.sent[1], {"params", "_meta", version}) == R"("2026-07-28")");
  for (const std::string params : {R"({"name":"s__x"})", R"({"_meta":{},"name":"s__x"})",
                                   R"({"name":"s__x","_meta":{"own":7,"progressToken":"t"}})"}) {
    INFO(params);
    const std::string sent = w.call(params);
    CHECK(mcp::valid_json(sent));
    CHECK(member(sent, {"method"}) == R"("tools/call")");
    CHECK(member(sent, {"params", "name"}) == R"("x")");
    CHECK(member(sent, {"params", "_meta", version}) == R"("2026-07-28")");
    if (params.find("own") != std::string::npos)
      CHECK(member(sent, {"params", "_meta", "own"}) == "7");
    CHECK(w.got.find(R"("content":[])") != std::string::npos);
  }
}

TEST_CASE("reserved members of a client's _meta do not reach a stateless server") {
  World w(ProtocolPin::v2026_07_28);
  const std::string caps = "io.modelcontextprotocol/clientCapabilities";
  for (
      const std::string params :
      {R"({"name":"s__x","_meta":{"io.modelcontextprotocol/clientCapabilities":{"sampling":{}}}})",
       R"({"name":"s__x","_meta":{"a":1,"io.modelcontextprotocol/clientCapabilities":{"sampling":{}},"progressToken":"t"}})",
       R"({"_meta":{"io.modelcontextprotocol\/clientCapabilities":{"sampling":{}},"a":1},"name":"s__x"})",
       R"({"_meta":{"\u0069o.modelcontextprotocol/logLevel":"debug" , "b":[1.0],"io.modelcontextprotocol/clientInfo":{}},"name":"s__x"})"}) {
    INFO(params);
    const std::string sent = w.call(params);
    INFO(sent);
    REQUIRE(mcp::valid_json(sent));
    CHECK_FALSE(mcp::has_duplicate_members(sent));
    CHECK(member(sent, {"params", "_meta", caps}) == "{}");
    CHECK(member(sent, {"params", "_meta", "io.modelcontextprotocol/logLevel"}).empty());
    CHECK(sent.find("sampling") == std::string::npos);
    if (params.find(R"("a":1)") != std::string::npos)
      CHECK(member(sent, {"params", "_meta", "a"}) == "1");
    if (params.find(R"("b":)") != std::string::npos)
      CHECK(member(sent, {"params", "_meta", "b"}) == "[1.0]");
  }
}
