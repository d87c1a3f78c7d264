// What servers answer to calls: judged where a policy reads results, and passed on.
#include <charconv>
#include <string>

#include "bulkhead/cpp/basics.hpp"
#include "route/calls.hpp"
#include "route/json_rpc.hpp"
#include "route/lane.hpp"
#include "route/protocol.hpp"
#include "route/splice.hpp"
#include "route/upstream.hpp"

namespace bulkhead {
namespace {

// Its own where it is one, so that clients can still act on it.
std::int32_t error_code_of(std::string_view error) {
  const std::string_view token = mcp::member(error, "code");
  std::int32_t out = 0;
  const char *last = token.data() + token.size();
  const auto [end, failed] = std::from_chars(token.data(), last, out);
  return !token.empty() && failed == std::errc{} && end == last ? out : code::internal_error;
}

}  // namespace

void Calls::answered(Exchange &e, const Message &answer) {
  // While the stream is still there: a question that the server no longer waits for is taken back.
  if (e.open_asks != 0) {
    const std::uint64_t id = e.id;
    needs_.asks.call_ended(id, false);
    if (needs_.exchanges.get(id) == nullptr) return;  // its client cancelled it in between
    e.open_asks = 0;
  }
  if (needs_.gate.observes() && !passes_policy(e, answer)) return;
  pass(e, answer);
}

void Calls::pass(Exchange &e, const Message &answer) {
  const mcp::Scan &scan = *answer.scan;
  // Sent before the exchange is freed: the client's id lives in it.
  const ReplyTo reply = e.reply;
  const std::uint64_t id = e.id;
  const bool ok = scan.kind == mcp::Kind::result;
  if (scan.id.empty()) {
    return fail(e, code::internal_error,
                "server \"" + e.server + "\" answered with an error without an id: " +
                    std::string(answer[scan.error].substr(0, 300)),
                BH_OUTCOME_ERROR);
  }
  Splice splice(answer.bytes);
  splice.replace(scan.id, e.client_id);
  const bh_str *parts = splice.parts();
  if (parts == nullptr) return fail(e, code::internal_error, Splice::failure, BH_OUTCOME_ERROR);
  const std::uint32_t outcome = ok ? BH_OUTCOME_OK : BH_OUTCOME_ERROR;
  // The text alone: what else is in it is part of the response.
  std::string scratch;
  const std::string_view error =
      ok || !needs_.recorder.active()
          ? std::string_view{}
          : mcp::unquote(mcp::member(answer[scan.error], "message"), &scratch);
  const std::string_view response = answer[ok ? scan.result : scan.error];
  if (needs_.recorder.goes_first()) {
    put_on_record(e, {outcome, needs_.reactor.now_ns(), answer.size(), {}, error, response});
  }
  needs_.answers.answer(reply, parts, splice.count());
  Exchange *still = needs_.exchanges.get(id);  // the client may have gone while it was answered
  if (still == nullptr) return;
  finish(*still, outcome, answer.size(), {}, error, response);
  needs_.on_ended();
}

void Calls::fail_by_server(Exchange &e, std::int32_t error_code, std::string_view reason,
                           std::uint32_t outcome) {
  if (!needs_.gate.observes() || e.lane == nullptr) return fail(e, error_code, reason, outcome);
  const std::string message = error_message(Digits(e.id).view(), error_code, reason);
  mcp::Scan scan;
  mcp::ScanError error;
  if (!mcp::scan(message, &scan, &error)) {
    return fail(e, error_code, "server \"" + e.server + "\": its error cannot be read", outcome);
  }
  if (passes_policy(e, {message, &scan})) fail(e, error_code, reason, outcome);
}

// ---- the policy ------------------------------------------------------------------------------

// False: answered otherwise, or the decision is pending.
bool Calls::passes_policy(Exchange &e, const Message &answer) {
  const std::string_view body = Judge::judged_part_of_answer(answer);
  const std::uint64_t id = e.id;
  if (body.size() > DuplicateChecks::at_once) {
    if (!park_answer(e, answer, Stage::answer_checking)) return false;
    const ParkedMessage &message = e.parked->message;
    if (needs_.checks.begin(id, message.bytes(), Judge::judged_part_of_answer(message.get()))) {
      return false;
    }
    take(e);
    refuse_answer(e, Gate::failed("the pool for blocking work is full; try again later"));
    return false;
  }
  if (mcp::has_duplicate_members(body)) {
    filter(e, answer, Judge::duplicates_in("the result holds"));
    return false;
  }
  const Gate::Decision decision = needs_.judge.observe(e, answer);
  if (decision.verdict == Gate::Verdict::allow) return true;
  if (decision.verdict != Gate::Verdict::pending) {
    filter(e, answer, decision);
  } else if (!park_answer(e, answer, Stage::answer_deciding)) {
    needs_.on_unanswered(id, false);
  }
  return false;
}

// False: it is refused, since too much waits, or the call ended when its lane went on.
bool Calls::park_answer(Exchange &e, const Message &answer, Stage stage) {
  if (!needs_.waiting.take(answer.size())) {
    refuse_answer(e, Gate::failed("too much waits for the policy (limits.policy_waiting_bytes)"));
    return false;
  }
  e.parked = std::make_unique<ParkedCall>();
  e.parked->message = ParkedMessage(answer);
  e.parked->bytes = answer.size();
  e.stage = stage;
  // The server is done: its place is free for others, and its end is nothing to this call.
  const std::uint64_t id = e.id;
  Lane *lane = e.lane;
  detach(e);
  needs_.deadlines.arm(e, policy_time_ms(answer.size()));
  lane->pump();
  needs_.draining.look_later();
  return needs_.exchanges.get(id) != nullptr;
}

void Calls::answer_checked(Exchange &e, bool duplicates) {
  Gate::Decision decision = Judge::duplicates_in("the result holds");
  if (!duplicates) {
    decision = needs_.judge.observe(e, e.parked->message.get());
    e.stage = Stage::answer_deciding;
    if (decision.verdict == Gate::Verdict::pending) return;
  }
  answer_decided(e, decision);
}

void Calls::answer_decided(Exchange &e, const Gate::Decision &decision) {
  const CallInHand hand = take(e);
  if (decision.verdict == Gate::Verdict::allow) return pass(e, hand.message);
  filter(e, hand.message, decision);
}

// A policy has looked at the answer: it is replaced or withheld, the original never leaves.
void Calls::filter(Exchange &e, const Message &answer, const Gate::Decision &decision) {
  const mcp::Scan &scan = *answer.scan;
  if (scan.kind == mcp::Kind::error) {
    // An error is not rewritten: what a rule would take out of it is withheld with the rest.
    const Gate::Decision refusal =
        decision.verdict == Gate::Verdict::rewrite
            ? Gate::refusal(decision.rule, "an error of the server is not rewritten")
            : decision;
    needs_.judge.note(e, refusal);
    return refuse_answer(e, refusal, error_code_of(answer[scan.error]));
  }
  needs_.judge.note(e, decision);
  if (decision.verdict != Gate::Verdict::rewrite) return refuse_answer(e, decision);
  Splice splice(answer.bytes);
  splice.replace(scan.id, e.client_id);
  splice.replace(scan.result, decision.replacement);
  const bh_str *parts = splice.parts();
  if (parts == nullptr) return refuse_answer(e, Gate::failed(Splice::failure));
  const ReplyTo reply = e.reply;
  const std::uint64_t id = e.id;
  const std::string_view result = decision.replacement;
  if (needs_.recorder.goes_first()) {
    put_on_record(
        e, {BH_OUTCOME_OK, needs_.reactor.now_ns(), result.size(), decision.rule, {}, result});
  }
  needs_.answers.answer(reply, parts, splice.count());
  Exchange *still = needs_.exchanges.get(id);
  if (still == nullptr) return;
  finish(*still, BH_OUTCOME_OK, result.size(), decision.rule, {}, result);
  needs_.on_ended();
}

void Calls::refuse_answer(Exchange &e, const Gate::Decision &decision, std::int32_t error_code) {
  ++needs_.counters.refused_by_policy;
  std::string text = "MCP response blocked by policy";
  if (!decision.rule.empty()) text += " (" + decision.rule + ")";
  const ReplyTo reply = e.reply;
  const std::string id = e.client_id;
  const std::string why =
      decision.asks ? "needs approval, which a result cannot wait for" : decision.reason;
  if (!why.empty()) text += ": " + why;
  finish(e, BH_OUTCOME_REFUSED, 0, decision.rule, why);
  needs_.answers.error(reply, id, error_code, text);
}

}  // namespace bulkhead
