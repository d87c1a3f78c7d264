#include "route/approval_desk.hpp"

#include <memory>
#include <utility>

#include "bulkhead/cpp/basics.hpp"
#include "bulkhead/cpp/clock.hpp"
#include "bulkhead/cpp/json_writer.hpp"
#include "mcp/methods.hpp"
#include "route/approval_form.hpp"
#include "route/shown_json.hpp"

namespace bulkhead {
namespace {

// Returns true if the policy evaluates all params of the request, so an approval covers all of
// them. This applies to completion/complete and tasks/update.
bool covers_params(const mcp::Scan &scan) {
  return scan.method == mcp::Method::completion_complete ||
         scan.method == mcp::Method::tasks_update;
}

// Formats one part of the question, truncated to `max` bytes. If the part is truncated, a note
// states its full size.
std::string shown_part(std::string_view json, std::size_t max) {
  if (json.empty()) return {};
  ShownJson shown = shown_json(json, max);
  if (shown.cut) shown.text += " (truncated from " + std::to_string(json.size()) + " bytes)";
  return std::move(shown.text);
}

// Formats a text as a single line. Line breaks and tabs are escaped; otherwise, a client could
// forge the lines of a form with a name that contains line breaks.
std::string shown_line(std::string_view text, std::size_t max) {
  std::string out = visible_line(text, max);
  // Escapes make a text longer.
  if (text.size() > max || visible_line(text, SIZE_MAX).size() > max) out += "...";
  return out;
}

std::string_view status_of(ApprovalEnd end) {
  return end == ApprovalEnd::allowed ? std::string_view("approved") : to_string(end);
}

}  // namespace

Gate::Decision ApprovalDesk::unapproved(std::string rule, std::string_view reason,
                                        std::string_view why) {
  Gate::Decision out;
  out.verdict = Gate::Verdict::refuse;
  out.rule = std::move(rule);
  out.reason = "needs approval, ";
  out.reason.append(why);
  if (!reason.empty()) out.reason.append(": ").append(reason);
  out.asks = true;
  return out;
}

// ---- asking ----------------------------------------------------------------------------------

bool ApprovalDesk::asks_client(const Session &s) const {
  const bool reachable = s.repeats_requests || (!s.answers_only && !s.input_ended);
  return needs_.profile.approval.elicitation && reachable && shows_forms(s.revision, s.caps) &&
         (s.repeats_requests || s.load->asks < needs_.profile.limits.asks_per_session);
}

bool ApprovalDesk::somebody_watches() const {
  return needs_.profile.approval.api || approvals_.watched(needs_.reactor.now_ns());
}

// Composes the question except for the members that ask() sets.
ApprovalQuestion ApprovalDesk::question_of(const Call &call, const ApprovedTexts &texts,
                                           const Gate::Decision &decision) const {
  ApprovalQuestion q;
  q.method = mcp::to_string(call.method);
  q.server = call.server;
  q.digest = approval_digest(q.method, call.server, call.name, texts);
  q.rule = shown_line(decision.rule, ApprovalQuestion::max_text);
  q.process_name = shown_line(call.request.process_name, ApprovalQuestion::max_text);
  q.session = call.request.reply.session;
  if (call.session != nullptr) {
    q.session = call.session->client();
    q.has_session = call.session->load->has_session;
    q.principal = shown_line(call.session->principal, ApprovalQuestion::max_text);
    q.transport = call.session->transport;
    q.peer = shown_line(call.session->address, ApprovalQuestion::max_text);
    q.claimed_name = shown_line(text_of(call.session->claimed_name), ApprovalQuestion::max_text);
  }
  return q;
}

// Returns the reason why approval cannot be requested, or an empty string if it can.
std::string ApprovalDesk::refusal_text(const Call &call, bool elicits, std::size_t bytes) const {
  if (!elicits && !somebody_watches()) {
    const std::string hint = needs_.hint.empty() ? std::string() : " (" + needs_.hint + ")";
    return "but no approval surface is available" + hint;
  }
  const ClientLoad none;
  return approvals_.refusal(needs_.profile.limits,
                            call.session != nullptr ? *call.session->load : none, bytes);
}

// Returns false if no approver can be asked or a limit is reached. *refusal then has the reason.
bool ApprovalDesk::may_ask(const Call &call, bool elicits, std::size_t bytes,
                           const Gate::Decision &decision, Gate::Decision *refusal) const {
  if (!elicits && !somebody_watches()) {
    *refusal = unapproved(decision.rule, decision.reason, refusal_text(call, elicits, 0));
    return false;
  }
  const std::string full = refusal_text(call, elicits, bytes);
  if (full.empty()) return true;
  *refusal = unapproved(decision.rule, {}, {});
  refusal->reason = full;
  return false;
}

ApprovalDesk::Asked ApprovalDesk::ask(Call &call, const Message &message,
                                      const DefinitionHash &definition,
                                      const Gate::Decision &decision, Gate::Decision *refusal) {
  const mcp::Scan &scan = *message.scan;
  const Limits &limits = needs_.profile.limits;
  call.asked_about = true;
  const bool elicits = call.session != nullptr && asks_client(*call.session);
  // Skip computing the digest if the call cannot be approved.
  if (!approvals_.has_grants() && !may_ask(call, elicits, message.size(), decision, refusal)) {
    return Asked::refused;
  }
  const bool all = covers_params(scan);
  const std::string_view arguments = message[all ? scan.params : scan.arguments];
  const std::string meta = approved_meta(message[scan.meta], scan.modern);
  const std::string extra = all ? std::string() : mcp::extra_params(message.bytes, scan);
  Approvals::Waiting waiting{question_of(call, {arguments, meta, extra}, decision), call.id,
                             message.size(),
                             call.session != nullptr ? call.session->load : nullptr};
  ApprovalQuestion &q = waiting.question;
  if (call.method == mcp::Method::tools_call && definition != DefinitionHash{}) {
    q.tool_digest = tool_approval_digest(q.method, call.server, call.name, extra);
    q.definition = to_hex(definition);
    end_grants(approvals_.take_outdated(q), ApprovalSurface::none);
  }
  if (approvals_.granted(q, needs_.reactor.now_ns())) return Asked::granted;
  if (!may_ask(call, elicits, message.size(), decision, refusal)) return Asked::refused;
  ShownJson shown = shown_json(arguments, ApprovalQuestion::max_arguments);
  q.name = shown_line(call.name, ApprovalQuestion::max_name);
  q.reason = shown_line(decision.reason, ApprovalQuestion::max_reason);
  q.arguments = std::move(shown.text);
  q.arguments_cut = shown.cut;
  q.arguments_bytes = arguments.size();
  q.meta = shown_part(meta, ApprovalQuestion::max_meta);
  q.extra = shown_part(extra, ApprovalQuestion::max_extra);
  q.asked_unix_ms = bh::unix_ms();
  q.expires_unix_ms = q.asked_unix_ms + limits.approval_timeout_ms;
  const ApprovalQuestion *asked = approvals_.add(std::move(waiting));
  if (asked == nullptr) {
    *refusal = Gate::failed("cannot get random numbers from the kernel");
    return Asked::refused;
  }
  ++needs_.counters.approvals_asked;
  record(call, *asked, nullptr);
  return Asked::waits;
}

void ApprovalDesk::ask_client(Call &call) {
  const Approvals::Waiting *waiting = approvals_.find(call.id);
  if (waiting == nullptr || call.session == nullptr || !asks_client(*call.session)) return;
  Session &s = *call.session;
  const std::uint64_t timeout_ms = needs_.profile.limits.approval_timeout_ms;
  const std::uint64_t handle = needs_.asks.open_form(s, call.id, timeout_ms);
  needs_.asks.show_form(call, handle, approval_form(waiting->question, timeout_ms, s.revision));
}

// ---- answers ---------------------------------------------------------------------------------

ApprovalList ApprovalDesk::list(std::uint64_t watch_ms) {
  if (watch_ms != 0) approvals_.watch(needs_.reactor.now_ns(), watch_ms);
  return approvals_.list(needs_.reactor.now_ns());
}

Result<std::uint64_t> ApprovalDesk::find(const ApprovalAnswer &answer) const {
  if (!answer.scope.valid()) {
    return fail(BH_E_INVALID, "the scope must be \"once\", \"session\", or minutes from 1 to " +
                                  std::to_string(ApprovalScope::max_minutes) +
                                  "; for a tool, \"session\" or minutes from 1 to " +
                                  std::to_string(ApprovalScope::max_tool_minutes));
  }
  const Approvals::Waiting *waiting = approvals_.find(answer.id);
  if (waiting != nullptr && answer.scope.tool && waiting->question.tool_digest.empty()) {
    return fail(BH_E_INVALID,
                "only a tool in its server's tool list can be approved for all arguments; approve "
                "this call only");
  }
  if (waiting != nullptr && answer.scope.kind == ApprovalScope::Kind::session &&
      !waiting->question.has_session) {
    return fail(BH_E_INVALID,
                "this client has no session (MCP 2026-07-28 over HTTP): allow the call once, or "
                "allow it or its tool for a number of minutes");
  }
  if (waiting != nullptr) return waiting->call;
  return fail(
      BH_E_NOT_FOUND,
      "no approval request with this id is pending: it was answered, was withdrawn or timed out");
}

void ApprovalDesk::grant(const ApprovalQuestion &question, const ApprovalScope &scope) {
  const auto removed = approvals_.grant(question, scope, needs_.reactor.now_ns());
  if (removed) end_grants({*removed}, ApprovalSurface::none);
}

std::optional<ApprovalQuestion> ApprovalDesk::close(const Call &call, ApprovalEnd end,
                                                    ApprovalSurface surface,
                                                    const ApprovalScope &scope) {
  auto waiting = approvals_.take(call.id);
  if (!waiting.has_value()) return std::nullopt;
  needs_.asks.close_form(call.id);
  const ApprovalOutcome outcome{waiting->question, end, surface, scope, bh::unix_ms()};
  if (needs_.on_outcome) needs_.on_outcome(outcome);
  record(call, waiting->question, &outcome);
  return std::move(waiting->question);
}

Result<void> ApprovalDesk::revoke(const ApprovalAnswer &answer) {
  const auto grant = approvals_.revoke(answer.id);
  if (!grant) {
    return fail(BH_E_NOT_FOUND,
                "no approval with this id is in force: it has expired or was revoked");
  }
  end_grants({*grant}, answer.surface);
  return {};
}

void ApprovalDesk::forget_server(std::string_view server) {
  end_grants(approvals_.take_server(server), ApprovalSurface::none);
}

void ApprovalDesk::rules_changed() {
  end_grants(approvals_.take_tool_grants(), ApprovalSurface::none);
}

// Logs and records that grants have ended. The calls for which they were given may have ended.
void ApprovalDesk::end_grants(const std::vector<ApprovalGrant> &grants, ApprovalSurface surface) {
  for (const ApprovalGrant &grant : grants) {
    const ApprovalQuestion &q = grant.question;
    const ApprovalOutcome outcome{q, ApprovalEnd::withdrawn, surface, grant.scope, bh::unix_ms()};
    if (needs_.on_outcome) needs_.on_outcome(outcome);
    Session client;  // the names as the approver saw them; the session may have ended
    client.transport = q.transport;
    client.principal = q.principal;
    client.address = q.peer;
    client.claimed_name = std::make_shared<const std::string>(q.claimed_name);
    client.handle = q.session;
    Call call;
    call.session = &client;
    call.method = mcp::method_of(q.method);
    call.server = q.server;
    call.name = q.name;
    call.request.process_name = q.process_name;
    call.account.rule = q.rule;
    record(call, q, &outcome);
  }
}

void ApprovalDesk::record(const Call &call, const ApprovalQuestion &question,
                          const ApprovalOutcome *outcome) {
  if (!needs_.recorder.wants_events()) return;
  std::string detail = "{";
  bh::json::append_member(&detail, "id", question.id);
  bh::json::append_member(&detail, "status",
                          outcome == nullptr ? "pending" : status_of(outcome->end));
  bh::json::append_member(&detail, "digest", question.digest);
  const bool answered = outcome != nullptr && outcome->surface != ApprovalSurface::none;
  if (answered) bh::json::append_member(&detail, "surface", to_string(outcome->surface));
  // The scope is recorded when a call is allowed and when a grant ends.
  if (outcome != nullptr &&
      (outcome->end == ApprovalEnd::allowed || outcome->scope.kind != ApprovalScope::Kind::once)) {
    bh::json::append_member(&detail, "scope", to_string(outcome->scope));
  }
  needs_.recorder.event(call, BH_RECORD_APPROVAL, detail + "}");
}

}  // namespace bulkhead
