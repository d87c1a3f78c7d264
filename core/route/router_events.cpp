// What becomes of messages beside calls once the policy has judged them; see JudgedEvents.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "bulkhead/cpp/basics.hpp"
#include "route/router.hpp"
#include "route/wire_lane.hpp"

namespace bulkhead {

bool Router::serves(std::string_view server) const {
  return std::any_of(upstreams_.begin(), upstreams_.end(),
                     [server](const auto &upstream) { return upstream->name() == server; });
}

// The policy has thought about it for a while: who it is from and for may have gone.
void Router::pass(const JudgedEvent &event) {
  mcp::Scan scan;
  mcp::ScanError error;
  const Message message{event.message, &scan};
  const bh_str part = bh::str(event.message);
  WireLane *lane = event.lane == 0 ? nullptr : wire(event.lane);
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
  if (event.kind == JudgedEvent::Kind::subscription) return end_refused_subscription(event);
  if (event.kind == JudgedEvent::Kind::answer) return asks_.answer_refused(event.ask);
  if (event.kind != JudgedEvent::Kind::ask) return;
  if (WireLane *lane = wire(event.lane)) asks_.ask_refused(*lane, event.id, event.method);
}

// The rules are others now: what they would not let a client subscribe to ends.
void Router::judge_subscriptions(bh_session handle) {
  std::vector<std::string> tokens;
  if (const Session *s = session(handle)) {
    for (const auto &[token, subscription] : s->subscriptions) tokens.push_back(token);
  }
  for (const std::string &token : tokens) {
    Session *s = session(handle);  // a server in place may do anything when one ends
    if (s == nullptr) return;
    const auto at = s->subscriptions.find(token);
    if (at == s->subscriptions.end()) continue;
    JudgedEvent event;
    event.kind = JudgedEvent::Kind::subscription;
    event.server = at->second.lane->upstream().name();
    event.method = mcp::Method::resources_subscribe;
    event.method_text = mcp::to_string(event.method);
    event.tool = at->second.original;
    event.id = token;
    events_.judge(std::move(event), *s, {});
  }
}

// Its client may have made another one of that name meanwhile.
void Router::end_refused_subscription(const JudgedEvent &event) {
  Session *s = session(event.to.session);
  if (s == nullptr) return;
  const auto at = s->subscriptions.find(event.id);
  if (at == s->subscriptions.end() || at->second.original != event.tool) return;
  forget_subscription(*s, event.id);
}

}  // namespace bulkhead
