// What upstreams send: answers and notifications. Their requests: router_asks.cpp.
#include <algorithm>
#include <string>

#include "bulkhead/cpp/basics.hpp"
#include "route/router.hpp"
#include "route/splice.hpp"
#include "route/wire_lane.hpp"

namespace bulkhead {

WireLane *Router::wire(bh_lane handle) noexcept {
  WireLane **slot = wires_.get(handle);
  return slot == nullptr ? nullptr : *slot;  // null: of a connection that is being closed
}

void Router::upstream_message(bh_lane handle, std::uint64_t hint, std::string_view message) {
  WireLane *lane = wire(handle);
  if (lane == nullptr) return;
  mcp::Scan scan;
  mcp::ScanError error;
  if (message.size() > limits().message_bytes || !mcp::scan(message, &scan, &error)) {
    return log(BH_LOG_WARN, refuse_upstream(handle, hint, message, error));
  }
  if (scan.kind == mcp::Kind::batch) return upstream_batch(handle, hint, message);
  take_upstream(*lane, hint, message, scan);
}

void Router::take_upstream(WireLane &lane, std::uint64_t hint, std::string_view message,
                           mcp::Scan &scan) {
  std::string room;
  drop_members(&message, &scan, &room);
  if (scan.bad_progress_token) {
    if (scan.kind == mcp::Kind::request) {
      return asks_.refuse_malformed(lane, {message, &scan});
    }
    ++counters_.dropped_events;
    return;
  }
  switch (scan.kind) {
    case mcp::Kind::result:
    case mcp::Kind::error:
      return upstream_answer(lane, hint, message, scan);
    case mcp::Kind::request:
      return asks_.request(lane, hint, {message, &scan});
    case mcp::Kind::notification:
      return upstream_notification(lane, hint, message, scan);
    case mcp::Kind::batch:
      return;  // not in here
  }
}

// The call that it may have been meant for fails. What was wrong, for the log.
std::string Router::refuse_upstream(bh_lane handle, std::uint64_t hint, std::string_view message,
                                    const mcp::ScanError &error) {
  ++counters_.bad_upstream_messages;
  WireLane *lane = wire(handle);
  if (lane == nullptr) return {};
  const std::uint64_t id = hint != 0 ? hint : parse_number(error.seen_id.in(message));
  std::string text = "server \"" + lane->upstream().name() + "\" sent an invalid message: " +
                     (error.what[0] != '\0' ? error.what : "too large");
  Exchange *e = exchanges_.get(id);
  if (e != nullptr && e->lane == lane) {
    lane->abandon(id);
    exchange_failed(handle, id, {BH_E_PROTOCOL, text});
  }
  return text;
}

// ---- answers ---------------------------------------------------------------------------------

void Router::upstream_answer(WireLane &lane, std::uint64_t hint, std::string_view message,
                             const mcp::Scan &scan) {
  Exchange *e = exchanges_.get(parse_number(scan.id.in(message)));
  // An error about a request whose id the server could not read belongs to the stream's exchange.
  if (e == nullptr && hint != 0 && scan.kind == mcp::Kind::error) e = exchanges_.get(hint);
  if (e == nullptr || e->lane != &lane) {
    ++counters_.stray_answers;
    // The server has finished what a client had given up.
    return Attribution::finished(lane, parse_number(scan.id.in(message)));
  }
  if (e->purpose != Purpose::call) return lane.own_answer(*e, &scan, message, nullptr);
  calls_.answered(*e, {message, &scan});
}

void Router::exchange_failed(bh_lane handle, std::uint64_t exchange, const Error &error) {
  WireLane **slot = wires_.get(handle);
  Exchange *e = exchanges_.get(exchange);
  if (slot == nullptr || *slot == nullptr || e == nullptr || e->lane != *slot) return;
  if (e->purpose != Purpose::call) return (*slot)->own_answer(*e, nullptr, {}, &error);
  const std::string name = "server \"" + (*slot)->upstream().name() + "\"";
  const std::string text =
      error.text.find(name) != std::string::npos ? error.text : name + ": " + error.text;
  fail_exchange(*e, code::internal_error, text, BH_OUTCOME_ERROR);
}

void Router::lane_down(bh_lane handle, const Error &error, std::uint32_t retry_after_ms) {
  WireLane **slot = wires_.get(handle);
  if (slot != nullptr && *slot != nullptr) (*slot)->down(error, retry_after_ms);
}

// What clients had set up on the old connection is set up again.
void Router::lane_ready(Lane &lane) {
  Subscriptions::lane_ready(lane);
  Views::update_log_level(lane);
}

void Router::lane_lost(Lane &lane) {
  Attribution::connection_lost(lane);
  asks_.connection_lost(lane);
}

void Router::message_lost(const Lane &lane, mcp::Method method) {
  ++counters_.dropped_events;
  log(BH_LOG_ERROR, "server \"" + lane.upstream().name() + "\": " +
                        std::string(mcp::to_string(method)) + " was dropped: " + Splice::failure);
}

// ---- notifications ---------------------------------------------------------------------------

void Router::upstream_notification(WireLane &lane, std::uint64_t hint, std::string_view message,
                                   const mcp::Scan &scan) {
  switch (scan.method) {
    case mcp::Method::notifications_progress:
      return notifications_.progress(lane, {message, &scan});
    case mcp::Method::notifications_message:
      return notifications_.log_line(lane, hint, {message, &scan});
    case mcp::Method::notifications_resources_updated:
      return subscriptions_.updated(lane, {message, &scan});
    case mcp::Method::notifications_cancelled:
      return asks_.cancelled(lane, {message, &scan});
    case mcp::Method::notifications_tools_list_changed:
      return lane.list_changed(ItemKind::tool);
    case mcp::Method::notifications_prompts_list_changed:
      return lane.list_changed(ItemKind::prompt);
    case mcp::Method::notifications_resources_list_changed:
      lane.list_changed(ItemKind::resource);
      return lane.list_changed(ItemKind::resource_template);
    default:
      return notifications_.other(lane, hint, {message, &scan});
  }
}

}  // namespace bulkhead
