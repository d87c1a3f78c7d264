#include "route/call_answers.hpp"

#include <string>

#include "bulkhead/cpp/basics.hpp"
#include "mcp/scan.hpp"
#include "route/json_rpc.hpp"
#include "route/splice.hpp"

namespace bulkhead {
namespace {

// Returns the server's error code, so that clients can still act on it, or internal_error if the
// code is not an integer.
std::int32_t error_code_of(std::string_view error) {
  return read_error_code(error).value_or(code::internal_error);
}

}  // namespace

void CallAnswers::answered(Call &call, const Message &answer, std::string *owned) {
  needs_.bridge.arrived(call, answer);
  if (needs_.loop.running()) {
    needs_.loop.post_answer(call, answer, owned);
    return needs_.ends.leave_lane(call);
  }
  const CallLoop::Run run(needs_.loop);
  take(call, answer);
}

void CallAnswers::handle(Call &call, CallEvent event) {
  const EventDetails &details = call.events.details();
  if (event == CallEvent::failed) return fail(call, details.failure);
  take(call, {details.answer, &details.answer_scan});
}

void CallAnswers::take(Call &call, const Message &answer) {
  // Cancel the requests to which the server no longer needs answers. This must happen while the
  // stream is still open.
  if (call.open_asks != 0) {
    needs_.asks.call_ended(call.id, false);
    call.open_asks = 0;
  }
  if (!AnswerBridge::converts(call)) return judge(call, answer);
  AnswerBridge::Composed room;
  if (const auto taken = needs_.bridge.take(call, answer, &room)) judge(call, *taken);
}

void CallAnswers::judge(Call &call, const Message &answer) {
  if (!needs_.gate.observes() || passes_policy(call, answer)) pass(call, answer);
}

void CallAnswers::pass(Call &call, const Message &answer) {
  const mcp::Scan &scan = *answer.scan;
  if (scan.id.empty()) {
    return needs_.ends.fail(call, code::internal_error,
                            "server \"" + call.server +
                                "\" sent an error response without an id: " +
                                std::string(answer[scan.error].substr(0, 300)),
                            BH_OUTCOME_ERROR);
  }
  AnswerBridge::Reply reply(answer);
  if (!needs_.bridge.convert(call, answer, &reply)) return;
  // Only the message of the error is recorded as the error text. Its other members are recorded as
  // part of the response.
  std::string scratch;
  const std::string_view error =
      reply.ok || !needs_.recorder.active()
          ? std::string_view{}
          : mcp::unquote(mcp::member(answer[scan.error], "message"), &scratch);
  send(call, reply, {}, error);
}

// Sends the answer before ending the call, because the splice borrows the client's id from the
// call.
void CallAnswers::send(Call &call, AnswerBridge::Reply &reply, std::string_view rule,
                       std::string_view error) {
  const std::uint32_t outcome = reply.ok ? BH_OUTCOME_OK : BH_OUTCOME_ERROR;
  const bh_str *parts = reply.splice.parts();
  if (parts == nullptr) {
    return needs_.ends.fail(call, code::internal_error, Splice::failure, BH_OUTCOME_ERROR);
  }
  call.created = {};
  if (needs_.recorder.goes_first()) {
    needs_.ends.record(
        call, {outcome, needs_.reactor.now_ns(), reply.bytes, rule, error, reply.response});
  }
  needs_.answers.answer(call.request.reply, parts, reply.splice.count(), reply.http_status);
  needs_.ends.finish(call, outcome, reply.bytes, rule, error, reply.response);
  needs_.on_ended();
}

void CallAnswers::fail_by_server(Call &call, std::int32_t error_code, std::string_view reason,
                                 std::uint32_t outcome) {
  CallFailure failure{error_code, outcome, std::string(reason), call.exchange != nullptr};
  if (needs_.loop.running()) {
    needs_.loop.post_failure(call, CallEvent::failed, std::move(failure));
    return needs_.ends.leave_lane(call);
  }
  const CallLoop::Run run(needs_.loop);
  fail(call, failure);
}

void CallAnswers::fail(Call &call, const CallFailure &failure) {
  const auto &[error_code, outcome, reason, of_server, cancel] = failure;
  if (!needs_.gate.observes() || !of_server) {
    return needs_.ends.fail(call, error_code, reason, outcome);
  }
  const std::string message = error_message(Digits(call.id).view(), error_code, reason);
  mcp::Scan scan;
  mcp::ScanError error;
  if (!mcp::scan(message, &scan, &error)) {
    return needs_.ends.fail(call, error_code,
                            "server \"" + call.server + "\" sent a malformed error", outcome);
  }
  if (passes_policy(call, {message, &scan})) needs_.ends.fail(call, error_code, reason, outcome);
}

// ---- the policy ------------------------------------------------------------------------------

// Returns true if the policy allows the response. Returns false if the call has been answered or
// the decision is pending.
bool CallAnswers::passes_policy(Call &call, const Message &answer) {
  const std::string_view body = Judge::judged_part_of_answer(answer);
  if (body.size() > DuplicateChecks::at_once) {
    check_later(call, answer);
    return false;
  }
  if (mcp::has_duplicate_members(body)) {
    filter(call, answer, Judge::duplicates_in("the result contains"));
    return false;
  }
  const std::uint64_t id = call.id;
  const Gate::Decision decision = needs_.judge.observe(call, answer);
  if (decision.verdict == Gate::Verdict::allow) return true;
  if (decision.verdict != Gate::Verdict::pending) {
    filter(call, answer, decision);
  } else if (!park(call, answer, Stage::answer_deciding)) {
    needs_.on_unanswered(id, false);
  }
  return false;
}

void CallAnswers::check_later(Call &call, const Message &answer) {
  if (!park(call, answer, Stage::answer_checking)) return;
  const ParkedMessage &message = call.parked->message;
  const std::string_view body = Judge::judged_part_of_answer(message.get());
  if (needs_.checks.begin(call.id, message.bytes(), body)) return;
  needs_.parking.take(call);
  refuse(call, Gate::failed("the pool for blocking work is full; try again later"));
}

// Parks the call together with the server's response. If too much data is waiting, refuses the call
// and returns false.
bool CallAnswers::park(Call &call, const Message &answer, Stage stage) {
  if (!needs_.parking.park_answer(call, answer, stage)) {
    refuse(call, Gate::waits_full());
    return false;
  }
  // The server has finished the call. Its slot is free for other calls, and the call is no longer
  // affected if the server exits.
  needs_.ends.leave_lane(call);
  return true;
}

void CallAnswers::checked(Call &call, bool duplicates) {
  Gate::Decision decision = Judge::duplicates_in("the result contains");
  if (!duplicates) {
    decision = needs_.judge.observe(call, call.parked->message.get());
    call.stage = Stage::answer_deciding;
    if (decision.verdict == Gate::Verdict::pending) return;
  }
  decided(call, decision);
}

void CallAnswers::decided(Call &call, const Gate::Decision &decision) {
  const CallInHand hand = needs_.parking.take(call);
  if (decision.verdict == Gate::Verdict::allow) return pass(call, hand.message);
  filter(call, hand.message, decision);
}

// Replaces or withholds an answer; the original is never sent.
void CallAnswers::filter(Call &call, const Message &answer, const Gate::Decision &decision) {
  const mcp::Scan &scan = *answer.scan;
  if (scan.kind == mcp::Kind::error) {
    // An error is not rewritten but withheld completely.
    const Gate::Decision refusal =
        decision.verdict == Gate::Verdict::rewrite
            ? Gate::refusal(decision.rule, "a server error cannot be rewritten")
            : decision;
    needs_.judge.note(call, refusal);
    return refuse(call, refusal, error_code_of(answer[scan.error]));
  }
  needs_.judge.note(call, decision);
  if (decision.verdict != Gate::Verdict::rewrite) return refuse(call, decision);
  if (!AnswerBridge::converts(call)) {
    AnswerBridge::Reply reply(answer);
    reply.splice.replace(scan.id, call.request.id);
    reply.splice.replace(scan.result, decision.replacement);
    reply.bytes = decision.replacement.size();
    reply.response = decision.replacement;
    return send(call, reply, decision.rule, {});
  }
  const auto result = AnswerBridge::rewritten(call, answer[scan.result], decision.replacement);
  if (!result) {
    return refuse(call, Gate::refusal(decision.rule,
                                      "the rewritten result does not describe the task, or the "
                                      "task failed and its error cannot be rewritten"));
  }
  AnswerBridge::Composed whole{R"({"jsonrpc":"2.0","id":0,"result":)" + *result + "}"};
  mcp::ScanError error;
  if (!mcp::scan(whole.text, &whole.scan, &error)) {
    return refuse(call, Gate::failed("the rewritten result is not valid"));
  }
  const Message message{whole.text, &whole.scan};
  AnswerBridge::Reply reply(message);
  if (!needs_.bridge.convert(call, message, &reply)) return;
  reply.bytes = result->size();
  send(call, reply, decision.rule, {});
}

void CallAnswers::refuse(Call &call, const Gate::Decision &decision, std::int32_t error_code) {
  ++needs_.counters.refused_by_policy;
  std::string text = "MCP response blocked by policy";
  if (!decision.rule.empty()) text += " (" + decision.rule + ")";
  const std::string why =
      decision.asks ? "needs approval, which is not supported for results" : decision.reason;
  if (!why.empty()) text += ": " + why;
  needs_.ends.finish(call, BH_OUTCOME_REFUSED, 0, decision.rule, why);
  needs_.answers.error(call.request.reply, call.request.id, error_code, text);
}

}  // namespace bulkhead
