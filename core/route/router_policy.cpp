// What the policy and the pool say, handed to whom it is about; and what a person answers.
#include "route/approval_form.hpp"
#include "route/router.hpp"

namespace bulkhead {

void Router::checked(std::uint64_t number, bool duplicates) {
  if (events_.has(number)) return events_.checked(number, duplicates);
  calls_.checked(number, duplicates);
}

void Router::policy_decided(std::uint64_t number, const Gate::Decision &decision) {
  if (events_.has(number)) return events_.decided(number, decision);
  calls_.decided(number, decision);
}

void Router::unanswered(std::uint64_t number, bool late) const {
  if (hooks_.on_unanswered) hooks_.on_unanswered(number, late);
}

Result<void> Router::answer_approval(const ApprovalAnswer &answer) {
  const auto exchange = desk_.find(answer);
  if (!exchange.has_value()) return std::unexpected(exchange.error());
  calls_.approval_given(*exchange, answer.allow, answer.surface, answer.scope);
  return {};
}

// The client's answer to a question of the gateway's own.
void Router::form_answered(std::uint64_t exchange, const Message &message) {
  const FormAnswer answer = read_approval_form(message.bytes, *message.scan);
  if (!answer.shown) return form_lost(exchange);
  calls_.approval_given(exchange, answer.allow, ApprovalSurface::elicitation, answer.scope);
}

// The client cannot be asked, or no longer; others may still answer.
void Router::form_lost(std::uint64_t exchange) {
  const Exchange *e = exchanges_.get(exchange);
  if (e == nullptr || desk_.somebody_watches()) return;
  if (e->session != nullptr && e->session->closing) return;
  calls_.withdraw(exchange, "and the client cannot be asked for it");
}

}  // namespace bulkhead
