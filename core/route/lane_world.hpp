// A lane with a connector, but without the other parts of the router. Messages that the gateway
// sends are stored, and the test answers them.
#pragma once

#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <vector>

#include "route/call_input.hpp"
#include "route/fakes.hpp"
#include "route/stateless_form.hpp"
#include "route/wire_lane.hpp"

namespace bulkhead {

using Texts = std::vector<std::string>;

struct LaneWorld : FakeLaneHost {
  bh_status opens = BH_OK, sends = BH_OK;
  Texts sent;        // requests
  Texts repeatable;  // methods that were sent with BH_LANE_REPEATABLE
  Texts headers;     // of the last message
  Texts notified;
  std::vector<std::uint64_t> abandoned;
  std::uint32_t opened = 0, closed = 0;
  std::string revision;          // passed to the connector
  std::function<void()> inside;  // called inside the next send
  CallTable calls;
  ServerDef def = server_named("s");
  std::unique_ptr<Upstream> upstream;
  WireLane *lane = nullptr;

  static LaneWorld &of(void *self) { return *static_cast<LaneWorld *>(self); }
  static const bh_connector connector;

  explicit LaneWorld(std::uint32_t max_in_flight = 8,
                     ProtocolPin protocol = ProtocolPin::v2025_11_25) {
    def.protocol = protocol;
    def.max_in_flight = max_in_flight;
    upstream = std::make_unique<Upstream>(*this, def);
    upstream->connector = &connector;
    upstream->self = this;
    lane = static_cast<WireLane *>(upstream->lane_for(0, 0));
  }
  ~LaneWorld() override {
    if (lane != nullptr) upstream->remove(lane);
  }
  // Replaces the lane by one of a new upstream, which has this definition. The test must call
  // remove() before the upstream is destroyed.
  std::unique_ptr<Upstream> replaced_by(const ServerDef &other) {
    upstream->remove(lane);
    sent.clear();
    opened = 0;
    auto made = std::make_unique<Upstream>(*this, other);
    made->connector = &connector;
    made->self = this;
    lane = static_cast<WireLane *>(made->lane_for(0, 0));
    return made;
  }
  void remove(Upstream &of) {
    while (!of.lanes().empty()) of.remove(of.lanes().back().get());
    lane = nullptr;
  }
  // Sends a result as the server's response to the request that the lane itself has sent. `method`
  // is the method of that request.
  void answer(const std::string &method, const std::string &result) {
    respond(method, R"("result":)" + result);
  }
  void refuse(const std::string &method, const std::string &error) {
    respond(method, R"("error":)" + error);
  }
  // Makes the connector report that the request has failed.
  void fail(const std::string &method, const Error &error) {
    Exchange *e = own(method);
    if (e != nullptr) lane->own_answer(*e, nullptr, {}, &error);
  }
  void respond(const std::string &method, const std::string &outcome) {
    Exchange *e = own(method);
    if (e == nullptr) return;
    const Scanned m(R"({"jsonrpc":"2.0","id":)" + std::to_string(e->id) + "," + outcome + "}");
    static_cast<WireLane *>(e->lane)->own_answer(*e, &m.scan, m.text, nullptr);
  }
  // Returns the exchange of the open request that the lane has sent with this method.
  Exchange *own(const std::string &method) {
    for (const std::string &request : Texts(sent)) {
      if (mcp::member(request, "method") != "\"" + method + "\"") continue;
      const std::string_view id = mcp::member(request, "id");
      Exchange *e = table.get(std::strtoull(std::string(id).c_str(), nullptr, 10));
      if (e != nullptr) return e;
    }
    FAIL_CHECK("no such request: " << method);
    return nullptr;
  }
  void initialize() {
    answer("initialize", R"({"protocolVersion":"2025-06-18","capabilities":{"tools":{}}})");
  }
  void get_ready() {
    lane->start();
    initialize();
    answer("tools/list", R"({"tools":[{"name":"x"}]})");
    REQUIRE(lane->state() == LaneState::ready);
    sent.clear();
  }
  // Returns the methods of the requests that were sent.
  Texts methods() const {
    Texts out;
    for (const std::string &text : sent) out.emplace_back(mcp::member(text, "method"));
    return out;
  }
  // Makes a call. Returns the id with which the call was sent, or an empty string if it was not
  // sent.
  std::string call(const std::string &arguments = "{}", const std::string &method = "tools/call") {
    const std::size_t before = sent.size();
    Scanned m(R"({"jsonrpc":"2.0","id":"c","method":")" + method + R"(","params":{)" + members +
              R"("name":"s__x","arguments":)" + arguments + "}}");
    if (edit_scan) edit_scan(&m.scan);
    last = calls.open();
    last->session = client;
    last->input = std::move(input);
    // Only clients of 2026-07-28 send such members.
    if (!members.empty()) last->request.reply.form = &stateless_form;
    Exchange &e = *table.open();
    e.call = last;
    e.method = mcp::Method::tools_call;
    last->exchange = &e;
    last->stage = Stage::at_server;
    lane->attach(e);
    CallInHand hand{m.get(), {lane, {}, m.scan.name}, {}, {}, state};
    hand.target.resolved.original_token = "\"x\"";
    lane->submit(e, hand);
    return sent.size() == before ? "" : std::string(mcp::member(sent.back(), "id"));
  }
  void finish(Call &call) {
    if (call.exchange != nullptr) drop(*std::exchange(call.exchange, nullptr));
    calls.close(call);
    lane->pump();
  }
  Call *last = nullptr;
  Session *client = nullptr;  // of the next call
  // Further members of the next call's params, of a client of 2026-07-28; ends with a comma.
  std::string members;
  std::string state;                 // see CallInHand
  std::unique_ptr<CallInput> input;  // of the next call, which is repeated if it has rounds
  std::function<void(mcp::Scan *)> edit_scan;  // of the calls
  StatelessForm stateless_form{false};
};

inline const bh_connector LaneWorld::connector{
    sizeof(bh_connector),
    0,
    [](void *self, bh_lane, const bh_lane_info *, void **wire, bh_error *error) -> bh_status {
      *wire = self;
      LaneWorld &w = LaneWorld::of(self);
      ++w.opened;
      return w.opens == BH_OK ? BH_OK : bh::fail(error, w.opens, "there is no such program");
    },
    [](void *self, void *, const bh_lane_message *m, bh_error *error) -> bh_status {
      LaneWorld &w = LaneWorld::of(self);
      if (w.sends != BH_OK) return bh::fail(error, w.sends, "the pipe is full");
      if ((m->flags & BH_LANE_REPEATABLE) != 0)
        w.repeatable.emplace_back(mcp::member(joined(m->parts, m->part_count), "method"));
      w.headers.clear();
      for (std::uint32_t i = 0; i < m->header_count; ++i) {
        w.headers.push_back(std::string(bh::view(m->headers[i].name)) + ": " +
                            std::string(bh::view(m->headers[i].value)));
      }
      (m->kind == BH_LANE_REQUEST ? w.sent : w.notified).push_back(joined(m->parts, m->part_count));
      call_once(w.inside);
      return BH_OK;
    },
    [](void *self, void *, bh_str revision) { LaneWorld::of(self).revision = bh::view(revision); },
    [](void *self, void *, std::uint64_t e) { LaneWorld::of(self).abandoned.push_back(e); },
    [](void *self, void *) { ++LaneWorld::of(self).closed; },
};

}  // namespace bulkhead
