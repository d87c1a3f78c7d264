#include "route/wire_edge.hpp"

#include <utility>

#include "mcp/for_each.hpp"
#include "route/answer_form.hpp"
#include "route/attribution.hpp"
#include "route/drop_members.hpp"
#include "route/protocol.hpp"
#include "route/splice.hpp"
#include "route/upstream.hpp"

namespace bulkhead {
namespace {

constexpr std::uint32_t max_batch_messages = 256;

}  // namespace

// ---- connections -----------------------------------------------------------------------------

WireLane *WireEdge::find(bh_lane handle) noexcept {
  WireLane **slot = wires_.get(handle);
  return slot == nullptr ? nullptr : *slot;
}

void WireEdge::detach(bh_lane lane) {
  WireLane **slot = wires_.get(lane);
  if (slot == nullptr) return;
  *slot = nullptr;
  ++closing_;
}

void WireEdge::closed(bh_lane lane) {
  WireLane **slot = wires_.get(lane);
  if (slot == nullptr || *slot != nullptr) {
    return needs_.log(BH_LOG_PLUGIN_MISBEHAVES,
                      "a connector released a connection that was not being closed");
  }
  wires_.erase(lane);
  --closing_;
  needs_.on_idle();
}

// ---- messages --------------------------------------------------------------------------------

void WireEdge::message(bh_lane handle, std::uint64_t hint, std::string_view message) {
  WireLane *lane = find(handle);
  if (lane == nullptr) return;
  mcp::Scan scan;
  mcp::ScanError error;
  const bool too_large = message.size() > needs_.profile.limits.message_bytes;
  if (too_large || !mcp::scan(message, &scan, &error)) {
    return needs_.log(BH_LOG_WARN, refuse(handle, hint, message, error));
  }
  if (scan.kind == mcp::Kind::batch) return take_batch(handle, hint, message);
  take(*lane, hint, message, &scan);
}

void WireEdge::take(WireLane &lane, std::uint64_t hint, std::string_view bytes, mcp::Scan *scan) {
  std::string room;
  needs_.counters.dropped_members += drop_members(needs_.profile, &bytes, scan, &room);
  const Message message{bytes, scan};
  // A generation without ping has no requests from servers, and accepts no responses from clients.
  if (scan->kind == mcp::Kind::request && !lane.takes(mcp::Method::ping)) {
    ++needs_.counters.refused_asks;
    return needs_.log(BH_LOG_WARN, "server \"" + lane.upstream().name() + "\" sent the request " +
                                       std::string(mcp::to_string(scan->method)) +
                                       ", which its protocol revision does not permit; the "
                                       "request was dropped");
  }
  if (scan->bad_progress_token) {
    if (scan->kind == mcp::Kind::request) return needs_.asks.refuse_malformed(lane, message);
    ++needs_.counters.dropped_events;
    return;
  }
  switch (scan->kind) {
    case mcp::Kind::result:
    case mcp::Kind::error:
      return answer(lane, hint, message);
    case mcp::Kind::request:
      return needs_.asks.request(lane, hint, message);
    case mcp::Kind::notification:
      return notification(lane, hint, message);
    case mcp::Kind::batch:
      return;  // take_batch() handles batches
  }
}

// Fails the exchange to which the invalid message may have belonged. Returns the error to log.
std::string WireEdge::refuse(bh_lane handle, std::uint64_t hint, std::string_view message,
                             const mcp::ScanError &error) {
  ++needs_.counters.bad_upstream_messages;
  WireLane *lane = find(handle);
  if (lane == nullptr) return {};
  const std::uint64_t id = hint != 0 ? hint : parse_number(error.seen_id.in(message));
  std::string text = "server \"" + lane->upstream().name() + "\" sent an invalid message: " +
                     (error.what[0] != '\0' ? error.what : "too large");
  const Exchange *e = needs_.exchanges.get(id);
  if (e != nullptr && e->lane == lane) {
    lane->abandon(id);
    exchange_failed(handle, id, {BH_E_PROTOCOL, text});
  }
  return text;
}

void WireEdge::answer(WireLane &lane, std::uint64_t hint, const Message &message) {
  const mcp::Scan &scan = *message.scan;
  Exchange *e = needs_.exchanges.get(parse_number(message.id()));
  // A server that could not read a request's id sends an error without that id. Such an error
  // belongs to the exchange whose stream it arrived on.
  if (e == nullptr && hint != 0 && scan.kind == mcp::Kind::error) e = needs_.exchanges.get(hint);
  if (e == nullptr || e->lane != &lane) {
    ++needs_.counters.stray_answers;
    // The response to a cancelled or timed-out call, or one that the server has made up. If its
    // result contains a task, the task is cancelled.
    Attribution::finished(lane, parse_number(message.id()));
    if (scan.kind == mcp::Kind::result) lane.tasks().cancel_stray(message[scan.result]);
    return;
  }
  if (const AnswerForm *form = lane.answer_form()) {
    const bool task = e->call != nullptr && e->call->task == TaskRole::may_create;
    if (std::string problem = form->problem(message, e->method, task); !problem.empty()) {
      ++needs_.counters.bad_upstream_messages;
      return exchange_failed(lane.handle(), e->id, {BH_E_PROTOCOL, std::move(problem)});
    }
  }
  if (e->purpose != Purpose::call) return lane.own_answer(*e, &scan, message.bytes, nullptr);
  if (lane.opening().denies_sessions(message)) {
    const bh_lane handle = lane.handle();
    exchange_failed(
        handle, e->id,
        {BH_E_PROTOCOL, "the server no longer supports the revision of its connection"});
    if (WireLane *still = find(handle)) still->reopen();
    return;
  }
  const bool mismatch =
      lane.answer_form() != nullptr && lane.answer_form()->is_header_mismatch(message);
  if (mismatch && lane.renew_headers(*e)) return;
  const bh_lane handle = lane.handle();
  const bool doubtful = lane.answer_form() != nullptr && lane.answer_form()->is_foreign(message);
  needs_.answers.answered(*e->call, message);
  if (WireLane *still = doubtful ? find(handle) : nullptr) still->opening().recheck();
}

void WireEdge::exchange_failed(bh_lane handle, std::uint64_t exchange, const LaneFailure &failure) {
  const Error &error = failure.error;
  WireLane *lane = find(handle);
  Exchange *e = needs_.exchanges.get(exchange);
  if (lane == nullptr || e == nullptr || e->lane != lane) return;
  lane->challenged(failure);
  if (e->purpose != Purpose::call) {
    return lane->own_answer(*e, nullptr, {}, &error, failure.retry_after_ms);
  }
  const std::string name = "server \"" + lane->upstream().name() + "\"";
  const std::string text =
      error.text.find(name) != std::string::npos ? error.text : name + ": " + error.text;
  needs_.answers.fail_by_server(*e->call, code::internal_error, text, BH_OUTCOME_ERROR);
  lane = error.code == BH_E_PROTOCOL ? find(handle) : nullptr;
  if (lane != nullptr) lane->opening().recheck();
}

void WireEdge::down(bh_lane handle, const LaneFailure &failure) {
  WireLane *lane = find(handle);
  if (lane == nullptr) return;
  lane->challenged(failure);
  lane->down(failure.error, failure.retry_after_ms);
}

void WireEdge::notification(WireLane &lane, std::uint64_t hint, const Message &message) {
  switch (message.scan->method) {
    case mcp::Method::notifications_progress:
      return needs_.notifications.progress(lane, message);
    case mcp::Method::notifications_message:
      return needs_.notifications.log_line(lane, hint, message);
    case mcp::Method::notifications_resources_updated:
      return needs_.subscriptions.updated(lane, message);
    case mcp::Method::notifications_cancelled:
      if (lane.subscriptions().cancelled(message)) return;
      return needs_.asks.cancelled(lane, message);
    case mcp::Method::notifications_subscriptions_acknowledged:
      return lane.subscriptions().acknowledged(message);
    case mcp::Method::notifications_tools_list_changed:
      return lane.lists().changed(ItemKind::tool);
    case mcp::Method::notifications_prompts_list_changed:
      return lane.lists().changed(ItemKind::prompt);
    case mcp::Method::notifications_resources_list_changed:
      lane.lists().changed(ItemKind::resource);
      return lane.lists().changed(ItemKind::resource_template);
    case mcp::Method::notifications_tasks:
    case mcp::Method::notifications_tasks_status:
      // Clients poll their tasks. The notification may belong to a task of any client, and contains
      // the server's own id.
      ++needs_.counters.dropped_events;
      return;
    default:
      return needs_.notifications.other(lane, hint, message);
  }
}

// ---- batches ---------------------------------------------------------------------------------

struct WireEdge::BatchInHand {
  WireEdge &edge;
  bh_lane lane;
  std::uint64_t hint;
  std::uint32_t count = 0;
  std::uint32_t bad = 0;
  std::string first_bad = {};

  void refuse(std::string_view element, const mcp::ScanError &error) {
    std::string text = edge.refuse(lane, hint, element, error);
    if (bad++ == 0) first_bad = std::move(text);
  }
};

// Batches are accepted in every revision, because this costs nothing, and there are servers of
// every revision that send them.
void WireEdge::take_batch(bh_lane handle, std::uint64_t hint, std::string_view message) {
  BatchInHand batch{*this, handle, hint};
  mcp::for_each_element(message,
                        [&](std::string_view element) { return take_element(batch, element); });
  if (batch.bad == 0) return;
  // Logs a single line, no matter how many messages are invalid.
  const std::string more =
      batch.bad == 1 ? "" : " (and " + std::to_string(batch.bad - 1) + " more in its batch)";
  needs_.log(BH_LOG_WARN, batch.first_bad + more);
}

// Handles one message of a batch. Returns false if the remaining messages must be ignored.
bool WireEdge::take_element(BatchInHand &batch, std::string_view element) {
  WireLane *lane = find(batch.lane);
  if (lane == nullptr) return false;
  mcp::Scan scan;
  mcp::ScanError error;
  if (++batch.count > max_batch_messages) {
    error.what = "a batch of more than 256 messages; the rest was dropped";
    batch.refuse({}, error);
    return false;
  }
  if (element.starts_with('[')) {
    error.what = "a batch inside a batch";
    batch.refuse({}, error);
  } else if (mcp::scan(element, &scan, &error)) {
    take(*lane, batch.hint, element, &scan);
  } else {
    batch.refuse(element, error);
  }
  return true;
}

}  // namespace bulkhead
