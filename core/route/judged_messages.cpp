#include "route/judged_messages.hpp"

#include "bulkhead/cpp/basics.hpp"
#include "route/lane.hpp"

namespace bulkhead {

// The policy's decision may have been delayed, so the sender or the receiver may be gone.
void JudgedMessages::pass(const JudgedEvent &event) {
  mcp::Scan scan;
  mcp::ScanError error;
  const Message message{event.message, &scan};
  const bh_str part = bh::str(event.message);
  Lane *lane = event.lane == 0 ? nullptr : needs_.find_lane(event.lane);
  switch (event.kind) {
    case JudgedEvent::Kind::ask:
      if (event.call != 0) {
        if (mcp::scan(event.message, &scan, &error)) {
          const auto number = static_cast<std::uint32_t>(event.hint);
          needs_.asks.input_judged(event.call, number, message);
        }
        return;
      }
      if (lane != nullptr && mcp::scan(event.message, &scan, &error)) {
        needs_.asks.ask_judged(*lane, event.hint, message, event.to.session);
      }
      return;
    case JudgedEvent::Kind::answer:
      if (mcp::scan(event.message, &scan, &error)) needs_.asks.answer_judged(event.ask, message);
      return;
    case JudgedEvent::Kind::to_client:
      if (event.call != 0 && needs_.calls.get(event.call) == nullptr) return;
      return needs_.answers.send(event.to, BH_OUT_EVENT, &part, 1);
    case JudgedEvent::Kind::to_server:
      if (lane != nullptr) lane->send(BH_LANE_NOTIFICATION, &part, 1);
      return;
    case JudgedEvent::Kind::subscription:
      return;  // the subscription is kept
  }
}

void JudgedMessages::refused(const JudgedEvent &event) {
  if (event.kind == JudgedEvent::Kind::subscription) return needs_.subscriptions.refused(event);
  if (event.kind == JudgedEvent::Kind::answer) return needs_.asks.answer_refused(event.ask);
  if (event.kind != JudgedEvent::Kind::ask) return;
  if (event.call != 0) {
    const auto number = static_cast<std::uint32_t>(event.hint);
    return needs_.asks.input_refused(event.call, number, event.method);
  }
  if (Lane *lane = needs_.find_lane(event.lane)) {
    needs_.asks.ask_refused(*lane, event.id, event.method);
  }
}

}  // namespace bulkhead
