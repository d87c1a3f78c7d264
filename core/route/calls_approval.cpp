// The part of Calls that handles human approval: requests, decisions, withdrawals and expiry.
#include "bulkhead/cpp/basics.hpp"
#include "route/approval_form.hpp"
#include "route/calls.hpp"
#include "route/lane.hpp"
#include "route/upstream.hpp"

namespace bulkhead {
namespace {

constexpr std::string_view redefined = "but the definition of the tool has changed";

// Resources and prompts have definitions too, but an approval covers them by name. For example, the
// definition of a resource contains its size, which changes with its content.
bool is_tool(const Call &parked) {
  return parked.parked->target.resolved.kind == ItemKind::tool;
}

}  // namespace

Calls::Next Calls::ask_person(Call &call, const CallInHand &hand, const Gate::Decision &decision) {
  Gate::Decision refusal;
  switch (needs_.desk.ask(call, hand.message, hand.target.resolved.definition_hash, decision,
                          &refusal)) {
    case ApprovalDesk::Asked::granted:
      return call.waited ? Step::confirm : Step::record;
    case ApprovalDesk::Asked::refused:
      refuse(call, refusal);
      return std::nullopt;
    case ApprovalDesk::Asked::waits:
      break;
  }
  call.approved_rule = decision.rule;
  call.approved_definition = hand.target.resolved.definition_hash;
  if (park(call, hand, Stage::approving)) needs_.desk.ask_client(call);
  return std::nullopt;
}

void Calls::approval_given(std::uint64_t id, bool allow, ApprovalSurface surface,
                           const ApprovalScope &scope) {
  Call *call = needs_.calls.get(id);
  if (call == nullptr) return;
  if (loop().running()) return loop().post_approval(*call, allow, surface, scope);
  const CallLoop::Run run(loop());
  take_approval(*call, allow, surface, scope);
}

void Calls::take_approval(Call &call, bool allow, ApprovalSurface surface,
                          const ApprovalScope &wanted) {
  if (call.stage != Stage::approving) return;
  if (allow && is_outdated(call, &call.parked->target) && is_tool(call)) {
    return take_withdrawal(call, redefined);
  }
  const ApprovalEnd end = allow ? ApprovalEnd::allowed : ApprovalEnd::denied;
  // If the rules were replaced in the meantime, the approval does not cover other calls to the
  // tool. If the client has no session, an approval cannot last for the session.
  const bool outdated = wanted.tool && call.rules != rules_;
  const bool endless = wanted.kind == ApprovalScope::Kind::session && call.session != nullptr &&
                       !call.session->load->has_session;
  const ApprovalScope scope = outdated || endless || !allow ? ApprovalScope{} : wanted;
  const auto question = needs_.desk.close(call, end, surface, scope);
  if (!question) return;
  CallInHand hand = needs_.parking.take(call);
  if (!allow) {
    ++needs_.counters.approvals_denied;
    return refuse(
        call, ApprovalDesk::unapproved(call.approved_rule, question->reason, "which was denied"));
  }
  ++needs_.counters.approvals_allowed;
  // If the server has been replaced, the grant must not apply to the program that replaced it.
  if (!needs_.draining.has(&hand.target.lane->upstream())) needs_.desk.grant(*question, scope);
  call.approved = true;
  // The rules may have been replaced during the wait, so the call is evaluated again.
  advance(call, hand, Step::judge);
}

Result<void> Calls::answer_approval(const ApprovalAnswer &answer) {
  if (answer.revoke) return needs_.desk.revoke(answer);
  const auto call = needs_.desk.find(answer);
  if (!call.has_value()) return std::unexpected(call.error());
  approval_given(*call, answer.allow, answer.surface, answer.scope);
  return {};
}

void Calls::form_answered(std::uint64_t id, const Message &message) {
  const FormAnswer answer = read_approval_form(message.bytes, *message.scan);
  if (!answer.shown) return form_lost(id);
  approval_given(id, answer.allow, ApprovalSurface::elicitation, answer.scope);
}

void Calls::form_lost(std::uint64_t id) {
  const Call *call = needs_.calls.get(id);
  if (call == nullptr || needs_.desk.somebody_watches()) return;
  if (call->session != nullptr && call->session->closing) return;
  withdraw(id, "but the client cannot be asked for approval");
}

void Calls::withdraw(std::uint64_t id, std::string_view why) {
  Call *call = needs_.calls.get(id);
  if (call == nullptr) return;
  if (loop().running()) return loop().post_withdrawal(*call, why);
  const CallLoop::Run run(loop());
  take_withdrawal(*call, why);
}

void Calls::take_withdrawal(Call &call, std::string_view why) {
  if (call.stage != Stage::approving) return;
  const auto question = needs_.desk.close(call, ApprovalEnd::withdrawn);
  if (!question) return;
  CallInHand hand = needs_.parking.take(call);
  const bool outdated = is_outdated(call, &hand.target) || call.rules == 0 ||
                        !needs_.judge.is_approved(call, hand.target);
  if (outdated && hand.target.resolved.kind == ItemKind::tool) {
    return refuse_redefined(call, hand.target, question->reason);
  }
  refuse(call, ApprovalDesk::unapproved(call.approved_rule, question->reason, why));
}

// Refuses a call whose tool is not approved, is no longer listed, or has changed since approval was
// requested.
void Calls::refuse_redefined(Call &call, const Target &target, std::string_view reason) {
  const bool listed = target.resolved.definition_hash != DefinitionHash{};
  if (call.redefined != 0 && !listed) {
    return needs_.ends.fail(
        call, code::method_not_found,
        "Tool not found: server \"" + call.server + "\" no longer lists \"" + call.name + "\"",
        BH_OUTCOME_ERROR);
  }
  if (!needs_.judge.is_approved(call, target)) {
    return refuse(call, needs_.judge.not_approved(call, target));
  }
  refuse(call, ApprovalDesk::unapproved(
                   call.approved_rule, reason,
                   "but the definition of the tool changed after approval was requested; send the "
                   "call again to request approval for the new definition"));
}

void Calls::definitions_changed(const Lane &lane) {
  const Lane &first = lane.pool_of != nullptr ? *lane.pool_of : lane;
  for (const std::uint64_t id : needs_.ends.waiting_for(first)) {
    Call *call = needs_.calls.get(id);
    if (call == nullptr || call->stage != Stage::approving || !is_tool(*call)) continue;
    Target target = call->parked->target;
    const bool changed = Judge::renew_definition(*call, &target);
    if (changed || !needs_.judge.is_approved(*call, target)) withdraw(id, redefined);
  }
}

void Calls::withdraw_questions(const Session &s) {
  std::vector<std::uint64_t> ids;
  for (const Call *call = s.open_calls.head; call != nullptr; call = call->session_next) {
    if (call->stage == Stage::approving) ids.push_back(call->id);
  }
  for (const std::uint64_t id : ids) withdraw(id, "but the client closed its input");
}

void Calls::approval_expired(Call &call) {
  const auto question = needs_.desk.close(call, ApprovalEnd::expired);
  needs_.parking.take(call);
  ++needs_.counters.approvals_expired;
  refuse(call, ApprovalDesk::unapproved(
                   call.approved_rule, question ? question->reason : std::string(),
                   "which was not given within " + std::to_string(call.timeout_ms) + " ms"));
}

}  // namespace bulkhead
