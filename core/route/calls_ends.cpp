// How calls end: with an answer, an error or a record, or because their client or server has gone.
#include <string>
#include <utility>

#include "route/calls.hpp"
#include "route/json_rpc.hpp"
#include "route/lane.hpp"
#include "route/upstream.hpp"

namespace bulkhead {
namespace {

// What has failed, for those who look at -32603 only.
std::string_view failed_part(mcp::Method method) {
  using enum mcp::Method;
  switch (method) {
    case tools_call:
      return "tool call failed: ";
    case resources_read:
      return "resource read failed: ";
    case prompts_get:
      return "prompt get failed: ";
    case completion_complete:
      return "completion failed: ";
    default:
      return {};
  }
}

}  // namespace

void Calls::attach(Exchange &exchange, Lane &lane) {
  exchange.lane = &lane;
  lane.exchanges.push(exchange);
}

void Calls::detach(Exchange &exchange) {
  Lane *lane = std::exchange(exchange.lane, nullptr);
  if (lane == nullptr) return;
  lane->exchanges.remove(exchange);
  if (std::exchange(exchange.sent, false) && exchange.takes_place) --lane->in_flight;
}

void Calls::drop(Exchange &exchange) {
  Lane *lane = exchange.lane;
  detach(exchange);
  if (exchange.session != nullptr) exchange.session->exchanges.remove(exchange);
  release(exchange);
  if (exchange.asked_about) needs_.on_unanswered(exchange.id, false);
  needs_.recorder.forget(exchange);
  const std::uint64_t id = exchange.id;
  const bool asked = exchange.open_asks != 0;
  needs_.exchanges.close(exchange);
  if (asked) needs_.asks.call_ended(id, true);
  if (lane != nullptr) lane->pump();
  needs_.draining.look_later();
}

void Calls::finish(Exchange &e, std::uint32_t outcome, std::uint64_t bytes_out,
                   std::string_view rule, std::string_view error, std::string_view response) {
  // Before its record: what became of the question is part of it.
  if (e.stage == Stage::approving) needs_.desk.close(e, ApprovalEnd::withdrawn);
  put_on_record(e, {outcome, needs_.reactor.now_ns(), bytes_out, rule, error, response});
  Lane *const watches = e.watches;
  const std::string uri = watches != nullptr ? e.name : std::string();
  const bool left = watches != nullptr && needs_.subscriptions.ended(e, outcome);
  drop(e);
  if (left) Subscriptions::unsubscribe(*watches, uri);
}

void Calls::put_on_record(Exchange &e, const Recorder::End &end) {
  if (!needs_.recorder.active() || e.purpose != Purpose::call || e.account.recorded) return;
  needs_.recorder.record(e, end);
  e.account.recorded = true;
}

void Calls::fail(Exchange &e, std::int32_t error_code, std::string_view reason,
                 std::uint32_t outcome) {
  std::string text(error_code == code::internal_error ? failed_part(e.method) : std::string_view());
  text += reason;
  const ReplyTo reply = e.reply;
  const std::string id = e.client_id;
  const std::string error =
      needs_.recorder.active() ? error_object(error_code, text) : std::string();
  const bool may_have_run = e.account.dispatched;
  finish(e, outcome, 0, {}, text, error);
  needs_.answers.error(reply, id, error_code, text, 0, {}, may_have_run);
}

void Calls::retract(Lane *lane, std::uint64_t exchange, bool sent, const Session *session,
                    std::string_view reason, const mcp::Scan *reason_scan) const {
  if (lane == nullptr) return;
  if (sent && session != nullptr) needs_.attribution.given_up(*lane, exchange, *session);
  lane->retract(exchange, sent, reason, reason_scan);
}

void Calls::fail_and_retract(Exchange &e, std::int32_t error_code, std::string_view text,
                             std::uint32_t outcome) {
  Lane *lane = e.lane;
  const std::uint64_t id = e.id;
  const bool sent = e.sent;
  const Session *session = e.session;
  if (sent && session != nullptr && lane != nullptr) {
    needs_.attribution.given_up(*lane, id, *session);
  }
  fail(e, error_code, text, outcome);
  retract(lane, id, sent, nullptr, {}, nullptr);
}

// The server gets the client's own notification. The place that waited for the answer is
// released without one.
void Calls::cancel(Exchange &e, const Message &notification) {
  Lane *lane = e.lane;
  const std::uint64_t id = e.id;
  const bool sent = e.sent;
  const ReplyTo reply = e.reply;
  Session *session = e.session;
  finish(e, BH_OUTCOME_CANCELLED, 0, {}, "cancelled by the client");
  retract(lane, id, sent, session, notification.bytes, notification.scan);
  needs_.answers.none(reply);
}

// The servers are notified, so that they can stop.
void Calls::end_session(Session &s) {
  while (s.exchanges.head != nullptr) {
    Exchange &e = *s.exchanges.head;
    Lane *lane = e.lane;
    const std::uint64_t id = e.id;
    const bool sent = e.sent;
    finish(e, BH_OUTCOME_CANCELLED, 0, {}, "the client has gone");
    retract(lane, id, sent, &s, {}, nullptr);
  }
}

std::vector<std::uint64_t> Calls::waiting_for(const Lane &lane) const {
  std::vector<std::uint64_t> ids;
  needs_.exchanges.for_each([&](const Exchange &e) {
    const bool waits = e.lane == nullptr && e.parked != nullptr;
    if (waits && e.parked->target.lane == &lane) ids.push_back(e.id);
  });
  return ids;
}

bool Calls::busy() const {
  bool busy = false;
  needs_.exchanges.for_each([&](const Exchange &e) {
    busy = busy || (e.session != nullptr && e.stage != Stage::approving);
  });
  return busy;
}

void Calls::end_all() {
  std::vector<std::uint64_t> ids;
  needs_.exchanges.for_each([&](const Exchange &e) {
    if (e.session != nullptr) ids.push_back(e.id);
  });
  for (const std::uint64_t id : ids) {
    Exchange *e = needs_.exchanges.get(id);
    if (e == nullptr) continue;
    const bool ran = e->sent && e->lane != nullptr;
    fail_and_retract(*e, code::internal_error,
                     "the gateway is stopping; " +
                         (ran ? "server \"" + e->lane->upstream().name() + "\" may have run this"
                              : "this has not run"),
                     BH_OUTCOME_CANCELLED);
  }
}

}  // namespace bulkhead
