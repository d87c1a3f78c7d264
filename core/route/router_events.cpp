// Completes messages beside calls once the policy has judged them; see JudgedEvents.
#include "bulkhead/cpp/basics.hpp"
#include "route/router.hpp"
#include "route/wire_lane.hpp"

namespace bulkhead {

bool Router::serves(std::string_view server) const {
  return upstreams_.find(server) != nullptr;
}

// The policy has thought about it for a while: who it is from and for may have gone.
void Router::pass(const JudgedEvent &event) {
  mcp::Scan scan;
  mcp::ScanError error;
  const Message message{event.message, &scan};
  const bh_str part = bh::str(event.message);
  WireLane *lane = event.lane == 0 ? nullptr : wires_.find(event.lane);
  switch (event.kind) {
    case JudgedEvent::Kind::ask:
      if (lane != nullptr && mcp::scan(event.message, &scan, &error)) {
        asks_.ask_judged(*lane, event.hint, message);
      }
      return;
    case JudgedEvent::Kind::answer:
      if (mcp::scan(event.message, &scan, &error)) asks_.answer_judged(event.ask, message);
      return;
    case JudgedEvent::Kind::to_client:
      if (event.exchange != 0 && exchanges_.get(event.exchange) == nullptr) return;
      return answers_.send(event.to, BH_OUT_EVENT, &part, 1);
    case JudgedEvent::Kind::to_server:
      if (lane != nullptr) lane->send(BH_LANE_NOTIFICATION, &part, 1);
      return;
    case JudgedEvent::Kind::subscription:
      return;  // it stays
  }
}

void Router::refused(const JudgedEvent &event) {
  if (event.kind == JudgedEvent::Kind::subscription) return subscriptions_.refused(event);
  if (event.kind == JudgedEvent::Kind::answer) return asks_.answer_refused(event.ask);
  if (event.kind != JudgedEvent::Kind::ask) return;
  if (WireLane *lane = wires_.find(event.lane)) asks_.ask_refused(*lane, event.id, event.method);
}

}  // namespace bulkhead
