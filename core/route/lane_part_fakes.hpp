// Test fixture for the parts of a lane behind a connector: the part uses a fake lane and a fake
// connection.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "route/conversation.hpp"
#include "route/fakes.hpp"
#include "route/lane_wire.hpp"

namespace bulkhead {

// Stores the requests that the parts send.
struct FakeWire : LaneWire {
  FakeWire(FakeLaneHost &of, Lane &at) : host(of), lane(at) {}
  FakeLaneHost &host;
  Lane &lane;
  struct Sent {
    std::string method, params;
    std::uint64_t exchange;
  };
  std::vector<Sent> sent{};

  Exchange *own_exchange(Purpose purpose, mcp::Method method, std::uint64_t) override {
    Exchange *e = host.table.open();
    e->purpose = purpose;
    e->method = method;
    lane.attach(*e);
    return e;
  }
  void send_own(Exchange &e, std::string_view params, std::uint32_t,
                std::span<const bh_header>) override {
    sent.push_back({std::string(mcp::to_string(e.method)), std::string(params), e.id});
  }
  std::string about(std::string_view text) const override { return std::string(text); }

  std::vector<std::string> params_of(std::string_view method) const {
    std::vector<std::string> out;
    for (const Sent &request : sent) {
      if (request.method == method) out.push_back(request.params);
    }
    return out;
  }
};

struct LaneParts : FakeLaneHost {
  explicit LaneParts(ServerDef def = server_named("s")) : upstream(*this, std::move(def)) {
    lane.set_state(LaneState::connecting);
  }
  // Ends the exchange of the newest request, as the lane does before it passes the response on.
  void end_own_exchange() {
    if (Exchange *e = wire.sent.empty() ? nullptr : table.get(wire.sent.back().exchange)) drop(*e);
  }

  Upstream upstream;
  FakeLane lane{*this, upstream, 0, 0};
  FakeWire wire{*this, lane};
  Conversation conversation{upstream.def(), lane.server_caps(), 0};
};

}  // namespace bulkhead
