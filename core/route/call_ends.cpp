#include "route/call_ends.hpp"

#include <string>
#include <utility>

#include "bulkhead/cpp/json_writer.hpp"
#include "route/json_rpc.hpp"
#include "route/lane.hpp"
#include "route/upstream.hpp"

namespace bulkhead {
namespace {

// Names the operation that failed, for clients that display only the message of error -32603.
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

// The lane and exchange of a call, kept after the call has ended.
struct Place {
  Lane *lane = nullptr;  // null if the call is not at a server
  std::uint64_t exchange = 0;
  bool sent = false;

  explicit Place(const Call &call) : lane(lane_of(call)), sent(was_sent(call)) {
    if (lane != nullptr) exchange = call.exchange->id;
  }
  void retract(const Retraction &why) const {
    if (lane != nullptr) lane->retract(exchange, sent, why);
  }
};

}  // namespace

// ---- exchanges -------------------------------------------------------------------------------

void CallEnds::detach(Call &call) {
  Exchange *exchange = std::exchange(call.exchange, nullptr);
  if (exchange == nullptr) return;
  exchange->lane->detach(*exchange);
  needs_.exchanges.close(*exchange);
}

void CallEnds::leave_lane(Call &call) {
  Lane *lane = lane_of(call);
  if (lane == nullptr) return;
  detach(call);
  lane->pump();
  needs_.draining.look_later();
}

void CallEnds::drop(Exchange &exchange) {
  Lane &lane = *exchange.lane;
  lane.detach(exchange);
  needs_.exchanges.close(exchange);
  lane.pump();
  needs_.draining.look_later();
}

// ---- ending a call ---------------------------------------------------------------------------

// Withdraws the call's approval request, discards its parked message, and informs the policy if it
// has to decide about the call or has required approval for it.
void CallEnds::release(Call &call) {
  const Stage stage = call.stage;
  if (stage == Stage::approving) needs_.desk.close(call, ApprovalEnd::withdrawn);
  needs_.parking.discard(call);
  if (is_before_policy(stage) || call.asked_about) needs_.on_unanswered(call.id, false);
}

void CallEnds::free(Call &call) {
  Lane *lane = lane_of(call);
  detach(call);
  if (call.session != nullptr) call.session->open_calls.remove(call);
  release(call);
  needs_.recorder.forget(call);
  const std::uint64_t id = call.id;
  needs_.calls.retire(call);
  needs_.loop.free_later(call);
  if (call.open_asks != 0) needs_.asks.call_ended(id, true);
  const CreatedTask created = std::exchange(call.created, {});
  if (lane != nullptr) lane->pump();
  needs_.draining.look_later();
  if (!created.id.empty() && needs_.cancel_task) needs_.cancel_task(created);
}

void CallEnds::finish(Call &call, std::uint32_t outcome, std::uint64_t bytes_out,
                      std::string_view rule, std::string_view error, std::string_view response) {
  // Close the question first, because its outcome must be recorded before the call's.
  if (call.stage == Stage::approving) needs_.desk.close(call, ApprovalEnd::withdrawn);
  record(call, {outcome, needs_.reactor.now_ns(), bytes_out, rule, error, response});
  Lane *const watches = call.watches;
  const std::string uri = watches != nullptr ? call.name : std::string();
  const bool left = watches != nullptr && needs_.subscriptions.ended(call, outcome);
  free(call);
  if (left) Subscriptions::unsubscribe(*watches, uri);
}

void CallEnds::record(Call &call, const Recorder::End &end) {
  if (!needs_.recorder.active() || call.account.recorded) return;
  needs_.recorder.record(call, end);
  call.account.recorded = true;
}

void CallEnds::fail(Call &call, std::int32_t error_code, std::string_view reason,
                    std::uint32_t outcome) {
  std::string text(error_code == code::internal_error ? failed_part(call.method)
                                                      : std::string_view());
  text += reason;
  const std::string error =
      needs_.recorder.active() ? error_object(error_code, text) : std::string();
  const bool may_have_run = call.account.dispatched;
  finish(call, outcome, 0, {}, text, error);
  const ClientRequest &request = call.request;
  needs_.answers.error(request.reply, request.id, error_code, text, 0, {}, may_have_run);
}

void CallEnds::fail_and_retract(Call &call, const CallFailure &failure) {
  const Place place(call);
  if (place.sent && call.session != nullptr) {
    needs_.attribution.given_up(*place.lane, place.exchange, *call.session);
  }
  const std::uint32_t reason = failure.cancel;
  fail(call, failure.error_code, failure.text, failure.outcome);
  place.retract({reason});
}

void CallEnds::fail_as_result(Call &call, std::string_view text) {
  if (call.method != mcp::Method::tools_call) {
    return fail(call, code::internal_error, text, BH_OUTCOME_ERROR);
  }
  std::string result = R"({"content":[{"type":"text","text":)";
  bh::json::append_quoted(&result, text);
  result += R"(}],"isError":true})";
  const bool may_have_run = call.account.dispatched;
  finish(call, BH_OUTCOME_OK, result.size(), {}, {}, result);
  needs_.answers.result(call.request.reply, call.request.id, result, may_have_run);
}

// ---- events ----------------------------------------------------------------------------------

void CallEnds::cancel(Call &call, const Message &notification) {
  if (needs_.loop.running()) return needs_.loop.post_cancellation(call, notification);
  const CallLoop::Run run(needs_.loop);
  end_cancelled(call, notification);
}

void CallEnds::end_cancelled(Call &call, const Message &notification) {
  const Place place(call);
  finish(call, BH_OUTCOME_CANCELLED, 0, {}, "cancelled by the client");
  if (place.sent && call.session != nullptr) {
    needs_.attribution.given_up(*place.lane, place.exchange, *call.session);
  }
  place.retract({BH_CANCEL_CLIENT, notification.bytes, notification.scan});
  needs_.answers.none(call.request.reply);  // releases the slot that waited for the answer
}

void CallEnds::end_session(Session &session) {
  if (needs_.loop.running()) {
    for (Call *call = session.open_calls.head; call != nullptr; call = call->session_next) {
      needs_.loop.post(*call, CallEvent::gone);
    }
    return;
  }
  const CallLoop::Run run(needs_.loop);
  while (session.open_calls.head != nullptr) end_gone(*session.open_calls.head);
}

void CallEnds::end_gone(Call &call) {
  const Place place(call);
  finish(call, BH_OUTCOME_CANCELLED, 0, {}, "the client disconnected");
  if (place.sent && call.session != nullptr) {
    needs_.attribution.given_up(*place.lane, place.exchange, *call.session);
  }
  place.retract({BH_CANCEL_CLIENT_GONE});
}

void CallEnds::end_drained(Call &call, std::string_view text) {
  end(call, {code::internal_error, BH_OUTCOME_ERROR, std::string(text), false, BH_CANCEL_REMOVED});
}

void CallEnds::end_unanswered(Call &call, std::string_view text) {
  end(call, {code::timeout, BH_OUTCOME_TIMEOUT, std::string(text), false, BH_CANCEL_DEADLINE});
}

void CallEnds::end_evicted(Call &call, std::string_view text) {
  end(call, {code::timeout, BH_OUTCOME_CANCELLED, std::string(text)});
}

void CallEnds::end_all() {
  std::vector<std::uint64_t> ids;
  needs_.calls.for_each([&](const Call &call) { ids.push_back(call.id); });
  for (const std::uint64_t id : ids) {
    Call *call = needs_.calls.get(id);
    if (call == nullptr) continue;
    const std::string ran = may_have_run(*call)
                                ? "server \"" + call->server + "\" may have run the request"
                                : "the request has not run";
    end(*call, {code::internal_error, BH_OUTCOME_CANCELLED, "the gateway is stopping; " + ran,
                false, BH_CANCEL_SHUTDOWN});
  }
}

void CallEnds::end(Call &call, const CallFailure &failure) {
  if (needs_.loop.running()) return needs_.loop.post_failure(call, CallEvent::ended, failure);
  const CallLoop::Run run(needs_.loop);
  fail_and_retract(call, failure);
}

void CallEnds::handle(Call &call, CallEvent event) {
  if (event == CallEvent::gone) return end_gone(call);
  const EventDetails &details = call.events.details();
  if (event == CallEvent::cancelled) return end_cancelled(call, details.cancellation.get());
  fail_and_retract(call, CallFailure(details.end));
}

// ---- state -----------------------------------------------------------------------------------

bool CallEnds::busy() const {
  bool busy = false;
  needs_.calls.for_each([&](const Call &call) {
    busy |= call.stage != Stage::approving && call.stage != Stage::awaiting_repeat;
  });
  return busy;
}

std::vector<std::uint64_t> CallEnds::waiting_for(const Lane &lane) const {
  std::vector<std::uint64_t> ids;
  needs_.calls.for_each([&](const Call &call) {
    if (call.exchange != nullptr) return;
    const bool waits = call.parked != nullptr && call.parked->target.lane == &lane;
    // The call has left its lane, and the server's response is queued. The response may ask for
    // input, in which case the call returns to the lane.
    const bool answered =
        call.parked == nullptr && call.input != nullptr && call.input->request.target.lane == &lane;
    if (waits || answered) ids.push_back(call.id);
  });
  return ids;
}

}  // namespace bulkhead
