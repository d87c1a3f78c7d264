// The lists of a server, as far as they concern the lane's state: failures, calls that wait for a
// list, and inheriting the lists of a former definition.
#include <utility>

#include "route/kept_list.hpp"
#include "route/lane_host.hpp"
#include "route/upstream.hpp"
#include "route/wire_lane.hpp"

namespace bulkhead {

void WireLane::tools_failed(const std::string &reason, bool again, std::uint32_t retry_after_ms) {
  if (!again) return attempt_failed({BH_E_PROTOCOL, reason}, retry_after_ms);
  state_ = LaneState::waiting;
  settled_ = true;
  reason_ = reason;
  reconnects_.failed();
  reconnects_.schedule(retry_after_ms);
  host_.lane_changed(*this);
}

bool WireLane::renew_headers(Exchange &e) {
  if (e.method != mcp::Method::tools_call || state_ != LaneState::ready) return false;
  Call &call = *e.call;
  const bool renews = call.input != nullptr && !std::exchange(call.input->headers_renewed, true);
  if (renews) {
    queue_in_lane(call, call.input->request.in_hand());
    if (std::exchange(e.sent, false) && e.takes_place) --in_flight;
    held_.push_back(e.id);
  }
  lists_.changed(ItemKind::tool);
  if (renews) pump();
  return renews;
}

// Sends the held calls again. Calls that have ended in the meantime no longer have an exchange.
void WireLane::tools_read() {
  for (const std::uint64_t id : std::exchange(held_, {})) {
    const Exchange *e = host_.exchanges().get(id);
    if (e != nullptr && e->lane == this && e->call != nullptr) host_.send_again(*e->call);
  }
}

std::optional<ListHints> WireLane::list_hints(ItemKind kind, std::uint64_t now_ns) const {
  return lists_.hints(kind, subscriptions_.listening().reports(kind), now_ns);
}

void WireLane::refresh(ItemKind kind, std::uint64_t now_ns) {
  lists_.refresh(kind, subscriptions_.listening().reports(kind), now_ns);
}

void WireLane::inherit(const Lane &former) {
  if (!former.listed()) return;
  for (const ItemKind kind : all_item_kinds) {
    items_[static_cast<std::size_t>(kind)] = former.items(kind);
  }
  hide_tools(upstream_.def(), &items_[static_cast<std::size_t>(ItemKind::tool)]);
  server_caps_ = former.server_caps();
  instructions_ = former.instructions();
  listed_ = true;
  start_grace();
}

// Uses the stored list, which the server sent earlier to this process or to another one.
void WireLane::recall() {
  if (listed_ || session_ != 0) return;
  const std::string *text = upstream_.kept_list(caps_);
  // A server that is not lazy is started anyway and will soon send its list for these clients.
  // Until then, the list for clients without capabilities is shown.
  if (text == nullptr && !lazy()) text = upstream_.kept_list(0);
  ListedItems kept;
  if (text == nullptr || !read_kept_list(*text, upstream_.def(), host_.limits(), &kept)) return;
  items_ = std::move(kept.items);
  server_caps_ = kept.caps;
  instructions_ = std::move(kept.instructions);
  listed_ = recalled_ = true;
  host_.tools_listed(*this);
  host_.items_changed(*this);
}

// Newly hidden tools are removed immediately. Tools that are no longer hidden appear when the
// server sends a new list.
void WireLane::redefined() {
  if (lists_.hide()) {
    host_.items_changed(*this);
    host_.lane_changed(*this);
  }
  lists_.changed(ItemKind::tool);
  pump();
}

}  // namespace bulkhead
