// Test fixture for servers behind connectors: the request pipeline, the WireEdge, and fake servers
// whose messages are written by the test.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "route/call_world.hpp"
#include "route/wire_edge.hpp"

namespace bulkhead {

// A fake connector with one server. It stores the messages that the gateway sends.
struct FakeServer {
  std::vector<std::string> requests{}, responses{}, notifications{};
  std::vector<std::uint64_t> abandoned{};
  std::vector<bh_lane> opened{};  // newest last
  std::uint32_t closed = 0;

  bh_lane handle() const { return opened.empty() ? 0 : opened.back(); }
  // Returns the JSON-RPC id of the newest request with this method, or an empty string.
  std::string number_of(std::string_view method) const {
    const auto at = std::find_if(requests.rbegin(), requests.rend(), [&](const auto &request) {
      return mcp::member(request, "method") == "\"" + std::string(method) + "\"";
    });
    return at == requests.rend() ? "" : std::string(mcp::member(*at, "id"));
  }
};

inline const bh_connector connector_table = {
    sizeof(bh_connector),
    0,
    [](void *self, bh_lane lane, const bh_lane_info *, void **wire, bh_error *) -> bh_status {
      static_cast<FakeServer *>(self)->opened.push_back(lane);
      *wire = self;
      return BH_OK;
    },
    [](void *self, void *, const bh_lane_message *m, bh_error *) -> bh_status {
      auto &server = *static_cast<FakeServer *>(self);
      auto &kept = m->kind == BH_LANE_REQUEST    ? server.requests
                   : m->kind == BH_LANE_RESPONSE ? server.responses
                                                 : server.notifications;
      kept.push_back(joined(m->parts, m->part_count));
      return BH_OK;
    },
    [](void *, void *, bh_str) {},
    [](void *self, void *, std::uint64_t exchange) {
      static_cast<FakeServer *>(self)->abandoned.push_back(exchange);
    },
    [](void *self, void *) { ++static_cast<FakeServer *>(self)->closed; },
};

struct WireWorld : World {
  std::vector<std::string> log_lines;
  std::uint32_t idle = 0;
  WireEdge edge{{profile, counters, exchange_table, call_answers, asks, notifications,
                 subscriptions,
                 [this](std::int32_t, std::string_view text) { log_lines.emplace_back(text); },
                 [this] { ++idle; }}};

  // LaneHost
  bh_lane register_wire(WireLane *wire) override { return edge.add(wire); }
  void detach_wire(bh_lane wire) override { edge.detach(wire); }
  void forget_wire(bh_lane wire) override { edge.forget(wire); }
  void lane_lost(Lane &lost) override {
    Attribution::connection_lost(lost);
    asks.connection_lost(lost);
  }

  std::unique_ptr<Upstream> behind(FakeServer &server, ServerDef def) {
    auto made = std::make_unique<Upstream>(*this, std::move(def));
    made->connector = &connector_table;
    made->self = &server;
    return made;
  }
  // Sends a message from the server to the gateway.
  void sends(const FakeServer &server, const std::string &text, std::uint64_t hint = 0) {
    edge.message(server.handle(), hint, text);
  }
  // Responds to the newest request with this method.
  void answers_with(const FakeServer &server, std::string_view method, const std::string &result) {
    const std::string number = server.number_of(method);
    REQUIRE_FALSE(number.empty());
    sends(server, R"({"jsonrpc":"2.0","id":)" + number + R"(,"result":)" + result + "}");
  }
  // Responds to the handshake and to the list requests. `tools` is a JSON array.
  void connects(const FakeServer &server, const std::string &tools) {
    answers_with(server, "initialize",
                 R"({"protocolVersion":"2025-06-18","capabilities":{"tools":{},)"
                 R"("resources":{"subscribe":true}}})");
    answers_with(server, "tools/list", R"({"tools":)" + tools + "}");
    answers_with(server, "resources/list", R"({"resources":[]})");
    answers_with(server, "resources/templates/list", R"({"resourceTemplates":[]})");
  }
  // Calls a tool through this lane. Returns the exchange number under which the server received the
  // call, or 0 if the server has not received it.
  std::uint64_t call(Session &s, Lane &to, const FakeServer &server, const std::string &id_token) {
    const std::size_t before = server.requests.size();
    const Scanned m(R"({"jsonrpc":"2.0","id":)" + id_token +
                    R"(,"method":"tools/call","params":{"name":"t","arguments":{},)"
                    R"("_meta":{"progressToken":"p"}}})");
    Incoming request{{s.handle, 7, 0}, m.get(), 1};
    CallInHand hand{request.message, {&to, {}, m.scan.name}, {}, {}};
    hand.target.resolved.original_token = "\"t\"";
    calls.begin(s, request, hand);
    if (server.requests.size() == before) return 0;
    return std::stoull(std::string(mcp::member(server.requests.back(), "id")));
  }
  std::vector<std::string> sent_to(const Session &s, std::uint32_t kind) const {
    std::vector<std::string> out;
    for (const FakeClient::Sent &m : client.sent) {
      if (m.session == s.handle && m.kind == kind) out.push_back(m.text);
    }
    return out;
  }
};

}  // namespace bulkhead
