#include "route/gate.hpp"

#include "bulkhead/cpp/basics.hpp"
#include "mcp/scan.hpp"
#include "route/duplicate_checks.hpp"

namespace bulkhead {
namespace {

Gate::Decision pending() {
  Gate::Decision decision;
  decision.verdict = Gate::Verdict::pending;
  return decision;
}

bh_verdict empty_verdict() {
  bh_verdict verdict{};
  verdict.size = sizeof verdict;
  return verdict;
}

}  // namespace

Gate::Decision Gate::refusal(std::string rule, std::string reason) {
  Decision decision;
  decision.verdict = Verdict::refuse;
  decision.rule = std::move(rule);
  decision.reason = std::move(reason);
  return decision;
}

Gate::Decision Gate::failed(std::string reason) {
  return refusal(std::string(failed_rule), std::move(reason));
}

Gate::Decision Gate::waits_full() {
  return failed("too much data is waiting for the policy (limits.policy_waiting_bytes)");
}

Gate::Decision Gate::timed_out(std::uint64_t after_ms) {
  return refusal(std::string(timeout_rule),
                 "the policy did not respond within " + std::to_string(after_ms) + " ms");
}

void Gate::use(const bh_policy *table, void *self) {
  table_ = table;
  self_ = self;
  needs_ = table->needs(self);
}

Gate::Decision Gate::from(const bh_verdict &verdict) {
  Decision decision;
  decision.rule = bh::view(verdict.rule);
  decision.reason = bh::view(verdict.reason);
  decision.action = verdict.verdict;
  decision.warned = BH_HAS(bh_verdict, &verdict, flags) && (verdict.flags & BH_VERDICT_WARNED) != 0;
  switch (verdict.verdict) {
    case BH_VERDICT_ALLOW:
      return decision;
    case BH_VERDICT_REWRITE:
      decision.verdict = Verdict::rewrite;
      decision.replacement = bh::view(verdict.arguments);
      decision.unread = decision.replacement.size() > DuplicateChecks::at_once;
      if (!decision.unread) look_at(&decision);
      return decision;
    case BH_VERDICT_ASK:
      decision.verdict = Verdict::refuse;
      decision.asks = true;
      return decision;
    case BH_VERDICT_BLOCK:
      decision.verdict = Verdict::refuse;
      return decision;
    default:
      return failed("the policy returned an unknown verdict");
  }
}

void Gate::look_at(Decision *rewrite) {
  rewrite->unread = false;
  if (!mcp::valid_json(rewrite->replacement)) {
    *rewrite = failed("the policy's rewrite is not JSON");
  } else if (mcp::has_duplicate_members(rewrite->replacement)) {
    *rewrite = failed("the policy's rewrite contains an object with duplicate members");
  }
}

Gate::Decision Gate::read(std::uint64_t exchange, Decision decision) const {
  if (!decision.unread) return decision;
  if (later_) return later_(exchange, std::move(decision), nullptr);
  look_at(&decision);
  return decision;
}

Gate::Decision Gate::decide(const bh_policy_request &request) const {
  bh_verdict verdict = empty_verdict();
  bh_error error = bh::make_error();
  const bh_status status = table_->decide(self_, &request, &verdict, &error);
  if (status == BH_PENDING) return pending();
  if (status != BH_OK) return failed("the policy failed: " + std::string(bh::text(error)));
  return read(request.exchange, from(verdict));
}

Gate::Decision Gate::observe(const bh_policy_request &request, std::string_view result) const {
  bh_verdict verdict = empty_verdict();
  bh_error error = bh::make_error();
  const bh_status status = table_->observe(self_, &request, bh::str(result), &verdict, &error);
  if (status == BH_PENDING) return pending();
  if (status != BH_OK) return failed("the policy failed: " + std::string(bh::text(error)));
  return read(request.exchange, from(verdict));
}

Gate::Shown Gate::shows(const bh_policy_request &request, std::string *why) const {
  bh_error error = bh::make_error();
  const bh_status status = table_->filter(self_, &request, &error);
  const bool failed = status != BH_OK && status != BH_PENDING && status != BH_E_DENIED;
  if (failed) *why = bh::text(error);
  if (failed && why->empty()) *why = "status " + std::to_string(status);
  return status == BH_OK ? Shown::yes : status == BH_PENDING ? Shown::pending : Shown::no;
}

}  // namespace bulkhead
