#include "embed/policy_stack.hpp"

#include <utility>

#include "base/policy_texts.hpp"
#include "bulkhead/cpp/basics.hpp"
#include "mcp/scan.hpp"

namespace bulkhead {
namespace {

PolicyStack::Decision pending() {
  PolicyStack::Decision decision;
  decision.verdict = PolicyStack::Verdict::pending;
  return decision;
}

PolicyStack::Shown shown(PolicyStack::Verdict verdict) {
  return verdict == PolicyStack::Verdict::allow     ? PolicyStack::Shown::yes
         : verdict == PolicyStack::Verdict::pending ? PolicyStack::Shown::pending
                                                    : PolicyStack::Shown::no;
}

std::uint64_t size_of(const bh_policy_request &request) noexcept {
  std::uint64_t bytes = 0;
  for (const PolicyTextMember text : all_policy_texts) bytes += (request.*text).n;
  return bytes;
}

void join(std::string *all, std::string_view one) {
  if (one.empty()) return;
  if (!all->empty()) *all += ", ";
  *all += one;
}

// Returns a decision that requires approval for a call.
PolicyStack::Decision asking(bool warned) {
  PolicyStack::Decision decision;
  decision.verdict = PolicyStack::Verdict::refuse;
  decision.action = BH_VERDICT_ASK;
  decision.asks = true;
  decision.warned = warned;
  return decision;
}

}  // namespace

void PolicyStack::use(std::vector<Engine> engines, std::uint64_t kept_bytes) {
  engines_ = std::move(engines);
  max_kept_bytes_ = kept_bytes;
  needs_ = 0;
  for (Engine &engine : engines_) {
    engine.needs = engine.table->needs(engine.self);
    needs_ |= engine.needs;
  }
}

void PolicyStack::rules_changed() noexcept {
  for (auto &[exchange, kept] : kept_) kept.progress.stale = true;
}

// Returns the needs() bit that a policy must set to receive such a request.
std::uint32_t PolicyStack::wanted_bit(Look look, std::uint32_t event) noexcept {
  if (look == Look::observe) return BH_POLICY_READS_RESULTS;
  if (look == Look::filter) return BH_POLICY_FILTERS_LISTS;
  if (event == BH_EVENT_CALL) return BH_POLICY_DECIDES;
  if (event == BH_EVENT_NOTIFICATION) return BH_POLICY_JUDGES_NOTIFICATIONS;
  return BH_POLICY_JUDGES_INPUT;
}

// ---- requests --------------------------------------------------------------------------------

PolicyStack::Decision PolicyStack::begin(const bh_policy_request &request, Look look,
                                         std::string_view text) {
  Progress progress;
  progress.look = look;
  progress.call = look != Look::decide || request.event == BH_EVENT_CALL;
  bh_policy_request rest = request;
  rest.arguments = {};  // the text is a separate parameter
  if ((request.flags & BH_REQUEST_APPROVED) != 0) {
    const auto at = askers_.find(request.exchange);
    if (at != askers_.end()) progress.approved = at->second;
    rest.flags &= ~std::uint32_t{BH_REQUEST_APPROVED};
  }
  return run(rest, text, std::move(progress));
}

PolicyStack::Decision PolicyStack::run(const bh_policy_request &request, std::string_view text,
                                       Progress progress) {
  const std::uint32_t wanted = wanted_bit(progress.look, request.event);
  while (progress.next < engines_.size()) {
    const EngineBits bit = EngineBits{1} << progress.next;
    const Engine &engine = engines_[progress.next++];
    if ((engine.needs & wanted) == 0) continue;
    progress.reached |= bit;
    const std::string_view now = progress.rewritten ? progress.so_far.replacement : text;
    // If the verdict is delayed, the request must be stored, so space is required in advance.
    if (!has_room(request, now)) {
      return Gate::failed("too much data is waiting for policies (limits.policy_waiting_bytes)");
    }
    bh_policy_request asked = request;
    if ((progress.approved & bit) != 0) asked.flags |= BH_REQUEST_APPROVED;
    if ((progress.counted & bit) != 0) asked.flags |= BH_REQUEST_AGAIN;
    Decision decision = ask(engine, progress.look, asked, now);
    if (decision.unread) decision = read(request.exchange, std::move(decision), engine.self);
    if (decision.verdict == Verdict::pending) {
      progress.asked = engine.self;
      return keep(request, text, std::move(progress));
    }
    if (!merge(&progress, std::move(decision))) break;
  }
  return conclude(request.exchange, std::move(progress));
}

// Validates data that a policy has rewritten, before later policies receive it.
PolicyStack::Decision PolicyStack::read(std::uint64_t exchange, Decision rewrite,
                                        const void *who) const {
  if (read_later_) return read_later_(exchange, std::move(rewrite), who);
  Gate::look_at(&rewrite);
  return rewrite;
}

PolicyStack::Decision PolicyStack::conclude(std::uint64_t exchange, Progress progress) {
  if (progress.so_far.asks && progress.look == Look::decide && progress.call) {
    askers_.insert_or_assign(exchange, progress.askers);
  }
  return std::move(progress.so_far);
}

// Asks one engine. Passes only the parts of the request that the engine reads.
PolicyStack::Decision PolicyStack::ask(const Engine &engine, Look look, bh_policy_request request,
                                       std::string_view text) const {
  // The body of an event that is not a call is always read.
  const bool reads_text =
      request.event != BH_EVENT_CALL || (engine.needs & BH_POLICY_READS_ARGUMENTS) != 0;
  request.arguments = look == Look::decide && reads_text ? bh::str(text) : bh_str{};
  if (!reads_text) request.argument = request.context = request.extra = {};
  if ((engine.needs & BH_POLICY_READS_DEFINITION) == 0) request.definition = {};
  bh_verdict verdict{};
  verdict.size = sizeof verdict;
  bh_error error = bh::make_error();
  const PolicyWatch::Question question(watch_, engine.name);
  if (look == Look::filter) {
    const bh_status status = engine.table->filter(engine.self, &request, &error);
    if (status == BH_OK) return {};
    if (status == BH_PENDING) return pending();
    if (status == BH_E_DENIED) return Gate::refusal({}, {});
    return Gate::failed("the policy failed: " + std::string(bh::text(error)));
  }
  const bh_status status =
      look == Look::decide
          ? engine.table->decide(engine.self, &request, &verdict, &error)
          : engine.table->observe(engine.self, &request, bh::str(text), &verdict, &error);
  if (status == BH_PENDING) return pending();
  if (status != BH_OK) return Gate::failed("the policy failed: " + std::string(bh::text(error)));
  return Gate::from(verdict);
}

// Merges an engine's decision with the earlier decisions. Returns false if the merged decision is
// final.
bool PolicyStack::merge(Progress *progress, Decision decision) {
  Decision &so_far = progress->so_far;
  const auto end = [&](Decision last) {
    so_far = std::move(last);
    return false;
  };
  // Only a call can require approval. For other events, such as notifications, any verdict except
  // allow is a refusal. Results and list items are not events.
  if (!progress->call && decision.verdict != Verdict::allow) return end(std::move(decision));
  const bool asks = decision.asks && progress->look == Look::decide;
  if (decision.verdict == Verdict::refuse && !asks) return end(std::move(decision));
  const bool rewrites = decision.verdict == Verdict::rewrite;
  if ((asks && progress->rewritten) || (rewrites && so_far.asks)) {
    return end(Gate::failed(
        "one policy rewrites the call and another requires approval, which cannot be combined (" +
        so_far.rule + ", " + decision.rule + ")"));
  }
  so_far.warned = so_far.warned || decision.warned;
  if (asks) {
    if (!so_far.asks) so_far = asking(so_far.warned);
    progress->askers |= EngineBits{1} << (progress->next - 1);
    join(&so_far.rule, decision.rule);
    join(&so_far.reason, decision.reason);
  } else if (rewrites) {
    decision.warned = so_far.warned;
    so_far = std::move(decision);
    progress->rewritten = true;
  } else if (so_far.rule.empty() && !so_far.asks) {
    so_far.rule = std::move(decision.rule);
    so_far.reason = std::move(decision.reason);
    so_far.action = decision.action;
  }
  return true;
}

// ---- delayed answers -------------------------------------------------------------------------

bool PolicyStack::has_room(const bh_policy_request &request, std::string_view text) const noexcept {
  return kept_bytes_ + size_of(request) + text.size() <= max_kept_bytes_;
}

PolicyStack::Decision PolicyStack::keep(const bh_policy_request &request, std::string_view text,
                                        Progress progress) {
  Kept kept;
  kept.request = request;
  kept.bytes.reserve(size_of(request) + text.size());
  for (const PolicyTextMember one : all_policy_texts) kept.bytes += bh::view(request.*one);
  kept.text_at = kept.bytes.size();
  kept.bytes += text;  // even if it was rewritten, because the evaluation may begin again
  kept.needs = needs_;
  kept.cost = kept.bytes.size() + progress.so_far.replacement.size();
  kept.progress = std::move(progress);
  kept_bytes_ += kept.cost;
  kept_.insert_or_assign(request.exchange, std::move(kept));
  return pending();
}

PolicyStack::Decision PolicyStack::answered(std::uint64_t exchange, Decision decision,
                                            const void *who) {
  if (engines_.size() <= 1) return decision;
  const auto at = kept_.find(exchange);
  if (at == kept_.end() || (who != nullptr && who != at->second.progress.asked)) return pending();
  Kept kept = std::move(at->second);
  kept_.erase(at);
  kept_bytes_ -= kept.cost;
  if (kept.progress.stale) {
    // The first refusal is final, as always. Otherwise, all policies are asked again, because the
    // earlier ones decided under rules that may have changed.
    const bool refuses = decision.verdict == Verdict::refuse;
    if (refuses && !decision.asks && kept.progress.look != Look::filter) {
      return conclude(exchange,
                      Progress{.look = kept.progress.look, .so_far = std::move(decision)});
    }
    constexpr std::uint32_t texts = BH_POLICY_READS_ARGUMENTS | BH_POLICY_READS_DEFINITION;
    if ((needs_ & ~kept.needs & texts) != 0) {
      return Gate::failed(
          "the rules were replaced during evaluation, and the new ones need data "
          "that was not kept; try again");
    }
    // A policy that requires approval may not have counted the request.
    if (refuses) kept.progress.askers |= EngineBits{1} << (kept.progress.next - 1);
    decision = {};
    kept.progress = from_the_beginning(kept.progress);
  }
  if (!merge(&kept.progress, std::move(decision)))
    return conclude(exchange, std::move(kept.progress));
  std::size_t from = 0;
  for (const PolicyTextMember one : all_policy_texts) {
    bh_str &text = kept.request.*one;
    text.p = kept.bytes.data() + from;
    from += text.n;
  }
  return run(kept.request, std::string_view(kept.bytes).substr(kept.text_at),
             std::move(kept.progress));
}

PolicyStack::Progress PolicyStack::from_the_beginning(const Progress &before) noexcept {
  Progress progress;
  progress.look = before.look;
  progress.call = before.call;
  progress.approved = before.approved;
  progress.counted = before.counted | (before.reached & ~before.askers);
  return progress;
}

PolicyStack::Shown PolicyStack::filtered(std::uint64_t question, bool listed, const void *who,
                                         std::string *why) {
  const Decision decision = answered(question, listed ? Decision{} : Gate::refusal({}, {}), who);
  const Shown out = shown(decision.verdict);
  if (out == Shown::no && decision.rule == Gate::failed({}).rule) *why = decision.reason;
  return out;
}

void PolicyStack::forget(std::uint64_t number) {
  askers_.erase(number);
  const auto at = kept_.find(number);
  if (at == kept_.end()) return;
  kept_bytes_ -= at->second.cost;
  kept_.erase(at);
}

// ---- the table -------------------------------------------------------------------------------

// Converts a decision to the result of a policy function. If a policy failed, returns an error with
// that policy's message.
bh_status PolicyStack::fill_verdict(Decision decision, bh_verdict *out, bh_error *error) {
  last_decision_ = std::move(decision);
  if (last_decision_.verdict == Verdict::pending) return BH_PENDING;
  if (last_decision_.verdict == Verdict::refuse && last_decision_.action == 0) {
    constexpr std::string_view known = "the policy failed: ";  // the gate adds this prefix again
    std::string_view why = last_decision_.reason;
    if (why.starts_with(known)) why.remove_prefix(known.size());
    return bh::fail(error, BH_E_INTERNAL, why);
  }
  const bool rewrites = last_decision_.verdict == Verdict::rewrite;
  out->verdict = rewrites                                   ? BH_VERDICT_REWRITE
                 : last_decision_.verdict == Verdict::allow ? BH_VERDICT_ALLOW
                 : last_decision_.action == BH_VERDICT_ASK  ? BH_VERDICT_ASK
                                                            : BH_VERDICT_BLOCK;
  out->rule = bh::str(last_decision_.rule);
  out->reason = bh::str(last_decision_.reason);
  out->arguments = rewrites ? bh::str(last_decision_.replacement) : bh_str{};
  out->flags = last_decision_.warned ? BH_VERDICT_WARNED : 0;
  return BH_OK;
}

struct PolicyStackFunctions {
  using Look = PolicyStack::Look;
  static PolicyStack &stack(void *self) { return *static_cast<PolicyStack *>(self); }
  // Returns the only engine, or null if there are several engines.
  static const PolicyStack::Engine *only(void *self) {
    return stack(self).engines_.size() == 1 ? &stack(self).engines_.front() : nullptr;
  }

  static std::uint32_t needs(void *self) { return stack(self).needs_; }

  static bh_status decide(void *self, const bh_policy_request *request, bh_verdict *out,
                          bh_error *error) {
    if (const PolicyStack::Engine *one = only(self)) {
      const PolicyWatch::Question question(stack(self).watch_, one->name);
      return one->table->decide(one->self, request, out, error);
    }
    return stack(self).fill_verdict(
        stack(self).begin(*request, Look::decide, bh::view(request->arguments)), out, error);
  }
  static bh_status observe(void *self, const bh_policy_request *request, bh_str result,
                           bh_verdict *out, bh_error *error) {
    if (const PolicyStack::Engine *one = only(self)) {
      const PolicyWatch::Question question(stack(self).watch_, one->name);
      return one->table->observe(one->self, request, result, out, error);
    }
    return stack(self).fill_verdict(stack(self).begin(*request, Look::observe, bh::view(result)),
                                    out, error);
  }
  static bh_status filter(void *self, const bh_policy_request *request, bh_error *error) {
    if (const PolicyStack::Engine *one = only(self)) {
      const PolicyWatch::Question question(stack(self).watch_, one->name);
      return one->table->filter(one->self, request, error);
    }
    const PolicyStack::Decision decision = stack(self).begin(*request, Look::filter, {});
    const PolicyStack::Shown verdict = shown(decision.verdict);
    if (verdict == PolicyStack::Shown::pending) return BH_PENDING;
    if (verdict == PolicyStack::Shown::yes) return BH_OK;
    if (decision.rule != Gate::failed({}).rule) return BH_E_DENIED;
    return bh::fail(error, BH_E_INTERNAL, decision.reason);
  }
};

const bh_policy &PolicyStack::table() noexcept {
  static constexpr bh_policy table{sizeof(bh_policy),
                                   0,
                                   PolicyStackFunctions::needs,
                                   PolicyStackFunctions::decide,
                                   PolicyStackFunctions::observe,
                                   PolicyStackFunctions::filter,
                                   nullptr};
  return table;
}

}  // namespace bulkhead
