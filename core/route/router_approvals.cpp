// Calls that wait for a person, since the policy says "ask": who is asked, and what becomes of the
// call. It waits before it gets a lane, so it holds no place of a server; when a person has allowed
// it, the policy is asked once more, since its rules may be others by then.
#include <chrono>
#include <string>
#include <utility>

#include "bulkhead/cpp/basics.hpp"
#include "route/approval_form.hpp"
#include "route/router.hpp"
#include "route/shown_json.hpp"

namespace bulkhead {
namespace {

std::uint64_t unix_ms() {
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(
                                        std::chrono::system_clock::now().time_since_epoch())
                                        .count());
}

Gate::Decision unapproved(std::string rule, std::string_view reason, std::string_view why) {
  Gate::Decision out;
  out.verdict = Gate::Verdict::refuse;
  out.rule = std::move(rule);
  out.reason = "needs approval, ";
  out.reason.append(why);
  if (!reason.empty()) out.reason.append(": ").append(reason);
  out.asks = true;
  return out;
}

// What the policy judged, and what an approval is bound to. Of a completion it is all that is
// asked.
bool covers_params(const mcp::Scan &scan) {
  return scan.method == mcp::Method::completion_complete;
}

// With a limit of its own; of what is longer the beginning, and it says so.
std::string shown_part(std::string_view json, std::size_t max) {
  if (json.empty()) return {};
  ShownJson shown = shown_json(json, max);
  if (shown.cut) shown.text += " (the beginning of " + std::to_string(json.size()) + " bytes)";
  return std::move(shown.text);
}

std::string shown_text(std::string_view text, std::size_t max) {
  std::string out = visible_text(text, max);
  if (text.size() > max) out += "...";
  return out;
}

}  // namespace

// Without what is only for people.
ApprovalQuestion Router::question_of(const Exchange &e, const ApprovedTexts &texts,
                                     const Gate::Decision &decision) const {
  ApprovalQuestion q;
  q.method = mcp::to_string(e.method);
  q.server = e.server;
  q.digest = approval_digest(q.method, e.server, e.name, texts);
  q.rule = shown_text(decision.rule, ApprovalQuestion::max_text);
  q.process_name = shown_text(e.process_name, ApprovalQuestion::max_text);
  q.session = e.reply.session;
  if (e.session != nullptr) {
    q.principal = shown_text(e.session->principal, ApprovalQuestion::max_text);
    q.transport = e.session->transport;
    q.peer = shown_text(e.session->address, ApprovalQuestion::max_text);
  }
  return q;
}

bool Router::asks_client(const Session &s) const {
  return profile_.approval.elicitation && !s.answers_only && !s.input_ended &&
         shows_forms(s.revision, s.caps) && s.open_asks < limits().asks_per_session;
}

bool Router::somebody_watches() const {
  return profile_.approval.api || approvals_.watched(reactor_.now_ns());
}

// True: an answer that was given before holds for this call. False: it waits, or was refused since
// nobody can be asked.
bool Router::has_approval(Exchange &e, std::string_view message, const mcp::Scan &scan,
                          const Target &target, const Gate::Decision &decision) {
  e.asked_about = true;
  const bool all = covers_params(scan);
  const std::string_view arguments = (all ? scan.params : scan.arguments).in(message);
  const std::string meta = approved_meta(scan.meta.in(message));
  const std::string extra = all ? std::string() : mcp::extra_params(message, scan);
  Approvals::Waiting waiting{question_of(e, {arguments, meta, extra}, decision), e.id,
                             message.size()};
  ApprovalQuestion &q = waiting.question;
  if (approvals_.granted(q, reactor_.now_ns())) return true;
  const bool elicits = e.session != nullptr && asks_client(*e.session);
  if (!elicits && !somebody_watches()) {
    std::string why = "and nobody is there to give it";
    if (!hooks_.approval_hint.empty()) why += " (" + hooks_.approval_hint + ")";
    refuse(e, unapproved(decision.rule, decision.reason, why));
    return false;
  }
  const std::string full = approvals_.refusal(limits(), e.reply.session, message.size());
  if (!full.empty()) {
    Gate::Decision refusal = unapproved(decision.rule, {}, {});
    refusal.reason = full;
    refuse(e, refusal);
    return false;
  }
  ShownJson shown = shown_json(arguments, ApprovalQuestion::max_arguments);
  q.name = shown_text(e.name, ApprovalQuestion::max_name);
  q.reason = shown_text(decision.reason, ApprovalQuestion::max_reason);
  q.arguments = std::move(shown.text);
  q.arguments_cut = shown.cut;
  q.arguments_bytes = arguments.size();
  q.meta = shown_part(meta, ApprovalQuestion::max_meta);
  q.extra = shown_part(extra, ApprovalQuestion::max_extra);
  q.asked_unix_ms = unix_ms();
  q.expires_unix_ms = q.asked_unix_ms + limits().approval_timeout_ms;
  const ApprovalQuestion *asked = approvals_.add(std::move(waiting));
  if (asked == nullptr) {
    refuse(e, Gate::failed("the kernel gives no random numbers"));
    return false;
  }
  ++counters_.approvals_asked;
  record_question(e, *asked, nullptr);
  unapproved_.emplace(e.id, Undecided{kept(message), scan, target, false, decision.rule});
  arm(e, limits().approval_timeout_ms);
  if (elicits) elicit(e, *asked);
  return false;
}

// On the stream of the call itself.
void Router::elicit(Exchange &e, const ApprovalQuestion &question) {
  Session &s = *e.session;
  const std::uint64_t handle = asks_.open_form(s, e.id, limits().approval_timeout_ms);
  const std::string text =
      approval_form(handle, question, limits().approval_timeout_ms, s.revision);
  const bh_str part = bh::str(text);
  answers_.send({s.handle, e.reply.stream, 0}, BH_OUT_ASK, &part, 1);
}

// ---- answers ---------------------------------------------------------------------------------

ApprovalList Router::approvals(std::uint64_t watch_ms) {
  if (watch_ms != 0) approvals_.watch(reactor_.now_ns(), watch_ms);
  return approvals_.list();
}

Result<void> Router::answer_approval(const ApprovalAnswer &answer) {
  if (!answer.scope.valid()) {
    return fail(BH_E_INVALID, "the scope is \"once\", \"session\", or minutes from 1 to " +
                                  std::to_string(ApprovalScope::max_minutes));
  }
  const Approvals::Waiting *waiting = approvals_.find(answer.id);
  Exchange *e = waiting == nullptr ? nullptr : exchanges_.get(waiting->exchange);
  if (e == nullptr) {
    return fail(BH_E_NOT_FOUND,
                "no question with this id waits: it has been answered or withdrawn, or its time is "
                "over");
  }
  approval_given(*e, answer.allow, answer.surface, answer.scope);
  return {};
}

// The client's answer to elicit().
void Router::form_answered(std::uint64_t exchange, const Message &message) {
  const FormAnswer answer = read_approval_form(message.bytes, *message.scan);
  if (!answer.shown) return form_lost(exchange);
  Exchange *e = exchanges_.get(exchange);
  if (e == nullptr) return;
  approval_given(*e, answer.allow, ApprovalSurface::elicitation, answer.scope);
}

// The client can not be asked (any more); others may still answer.
void Router::form_lost(std::uint64_t exchange) {
  Exchange *e = exchanges_.get(exchange);
  if (e == nullptr || somebody_watches()) return;
  if (e->session != nullptr && e->session->closing) return;
  withdraw(*e, "and the client cannot be asked for it");
}

void Router::approval_given(Exchange &e, bool allow, ApprovalSurface surface,
                            const ApprovalScope &scope) {
  const ApprovalEnd end = allow ? ApprovalEnd::allowed : ApprovalEnd::denied;
  auto answered = take_unapproved(e.id, end, surface, scope);
  if (!answered) return;
  auto &[call, question] = *answered;
  if (!allow) {
    ++counters_.approvals_denied;
    return refuse(e, unapproved(call.rule, question.reason, "and a person has denied it"));
  }
  ++counters_.approvals_allowed;
  // Not for the program that has taken its server's place meanwhile.
  if (!draining_.has(&call.target.lane->upstream())) {
    approvals_.grant(question, scope, reactor_.now_ns());
  }
  call.approved = true;
  judge_again(e, std::move(call));
}

// The rules may have been replaced while the person thought: what they refuse now is refused.
void Router::judge_again(Exchange &e, Undecided call) {
  Gate::Decision decision;
  if (gate_.decides()) {
    if (checks_later(call.scan)) return check_call(e, std::move(call));
    decision = judge_call(e, *call.message, call.scan, call.target,
                          BH_REQUEST_APPROVED | BH_REQUEST_AGAIN);
  }
  if (decision.verdict != Gate::Verdict::pending) return call_decided(e, call, decision);
  if (!wait_for_policy(e, std::move(call))) unanswered(e.id, false);
}

// ---- ends ------------------------------------------------------------------------------------

// True: it was a person who did not answer, and the client has been told.
bool Router::approval_expired(Exchange &e) {
  auto expired = take_unapproved(e.id, ApprovalEnd::expired);
  if (!expired) return false;
  ++counters_.approvals_expired;
  refuse(e, unapproved(expired->call.rule, expired->question.reason,
                       "and nobody has given it within " + std::to_string(e.timeout_ms) + " ms"));
  return true;
}

void Router::withdraw(Exchange &e, std::string_view why) {
  auto gone = take_unapproved(e.id, ApprovalEnd::withdrawn);
  if (gone) refuse(e, unapproved(gone->call.rule, gone->question.reason, why));
}

// The client has ended its input: what it waits for must not happen behind its back.
void Router::withdraw_questions(const Session &s) {
  std::vector<std::uint64_t> ids;
  for (const Exchange *e = s.exchanges.head; e != nullptr; e = e->session_next) {
    if (unapproved_.contains(e->id)) ids.push_back(e->id);
  }
  for (const std::uint64_t id : ids) {
    if (Exchange *e = exchanges_.get(id)) withdraw(*e, "and the client has ended its input");
  }
}

// It waits no longer: whoever was asked is told, and it is on record.
std::optional<Router::Answered> Router::take_unapproved(std::uint64_t exchange, ApprovalEnd end,
                                                        ApprovalSurface surface,
                                                        const ApprovalScope &scope) {
  auto node = unapproved_.extract(exchange);
  auto waiting = approvals_.take(exchange);
  if (node.empty() || !waiting.has_value()) return std::nullopt;
  asks_.close_form(exchange);
  Answered out{std::move(node.mapped()), std::move(waiting->question)};
  const ApprovalOutcome outcome{out.question, end, surface, scope, unix_ms()};
  if (hooks_.on_approval) hooks_.on_approval(outcome);
  if (const Exchange *e = exchanges_.get(exchange)) record_question(*e, out.question, &outcome);
  return out;
}

}  // namespace bulkhead
