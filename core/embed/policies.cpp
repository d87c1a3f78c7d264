#include "embed/policies.hpp"

#include <algorithm>
#include <utility>

#include "bulkhead/cpp/basics.hpp"
#include "bulkhead/cpp/json_writer.hpp"
#include "embed/policy_watch.hpp"
#include "mcp/scan.hpp"
#include "plugin/config_schema.hpp"
#include "profile/difference.hpp"
#include "route/filtered_lists.hpp"
#include "route/recorder.hpp"
#include "route/reload.hpp"

namespace bulkhead {

Policies::Policies(HostCore &core, const Parts &parts) : core_(core), parts_(parts) {}

void Policies::connect() {
  rewrite_checks_ = std::make_unique<RewriteChecks>(
      *core_.reactor, [this](std::uint64_t exchange, Gate::Decision decision, const void *policy) {
        answered(exchange, std::move(decision), policy);
      });
  const Gate::ReadLater later = [this](std::uint64_t exchange, Gate::Decision rewrite,
                                       const void *policy) {
    return rewrite_checks_->begin(exchange, std::move(rewrite), policy);
  };
  stack_.read_with(later);
  core_.route().policy.gate.read_with(later);
}

Result<void> Policies::use() {
  std::vector<PolicyStack::Engine> engines;
  bool watched = false;
  for (const auto &part : parts_) {
    if (part->policy_stub != nullptr) {
      engines.push_back({&link::PolicyClientStub::table(), part->policy_stub.get()});
      continue;
    }
    const auto *policy = part->instance == nullptr
                             ? nullptr
                             : part->instance->ext(BH_EXT_POLICY, &bh_policy::filter);
    if (policy == nullptr) {
      const std::string name = "plugin \"" + part->use.plugin + "\"";
      if (part->failure.empty()) return fail(BH_E_INVALID, name + " is not a policy");
      return fail(BH_E_INVALID, "policy " + name + " is not running: " + part->failure);
    }
    engines.push_back({policy, part->instance->self(), &part->use.id});
    watched = watched || policy->needs(part->instance->self()) != 0;
  }
  if (engines.empty()) return {};
  stack_.use(std::move(engines), core_.profile.limits.policy_waiting_bytes);
  watch(watched);
  core_.route().policy.gate.use(&PolicyStack::table(), &stack_);
  return {};
}

// The stack and the watch have copies of the limits, so both are set up again.
void Policies::use_limits() {
  stack_.watch_with(nullptr);
  watch_.reset();
  static_cast<void>(use());  // cannot fail because the gate has already accepted these policies
}

void Policies::record(const std::vector<std::string> &changes) const {
  const PolicyMark &mark = core_.profile.policy_mark;
  std::string detail = "{", policies, changed;
  bh::json::append_member(&detail, "generation", mark.generation);
  bh::json::append_member(&detail, "rules", mark.rules);
  bh::json::append_member(&detail, "digest", mark.digest);
  for (const PluginUse &use : core_.profile.policies) {
    policies += (policies.empty() ? "" : ", ") + use.id + " (" + use.plugin + ")";
  }
  for (const std::string &line : changes) changed += (changed.empty() ? "" : ", ") + line;
  bh::json::append_member(&detail, "policies", policies);
  bh::json::append_member(&detail, "changes", changed);
  core_.route().records.recorder.gateway_event(BH_RECORD_POLICY, detail + '}');
}

// The watch starts a thread, so it is created only if at least one policy in this process receives
// requests.
void Policies::watch(bool wanted) {
  // With a lower limit, a slow response on a busy machine could be mistaken for a hang.
  constexpr std::uint64_t least_ms = 1'000;
  if (!wanted || watch_ != nullptr || !policy_hang_handler()) return;
  watch_ = std::make_unique<PolicyWatch>(std::max(core_.profile.limits.policy_timeout_ms, least_ms),
                                         policy_hang_handler());
  stack_.watch_with(watch_.get());
}

void Policies::answered(std::uint64_t exchange, Gate::Decision decision, const void *policy) {
  if (decision.unread) {
    decision = rewrite_checks_->begin(exchange, std::move(decision), policy);
    if (decision.verdict == Gate::Verdict::pending) return;
  }
  decision = stack_.answered(exchange, std::move(decision), policy);
  if (decision.verdict != Gate::Verdict::pending) core_.route().policy.decided(exchange, decision);
}

void Policies::filtered(std::uint64_t question, bool listed, const void *policy) {
  if (stack_.size() <= 1) return core_.route().policy.lists.answered(question, listed);
  std::string why;
  const Gate::Shown shown = stack_.filtered(question, listed, policy, &why);
  if (shown == Gate::Shown::pending) return;
  if (!why.empty()) core_.route().policy.lists.policy_failed("an item", why);
  core_.route().policy.lists.answered(question, shown == Gate::Shown::yes);
}

std::vector<PluginUse> Policies::extract_reloadable(Profile *next) const {
  std::vector<PluginUse> out;
  for (PluginUse &use : next->policies) {
    for (const auto &part : parts_) {
      PluginUse same = use, running = use;
      same.config_json = running.config_json = part->use.config_json;
      running.file = part->use.file;
      if (part->instance == nullptr || same == use || !same_use(part->use, running)) continue;
      const auto *table = part->instance->ext<bh_policy>(BH_EXT_POLICY);
      if (table == nullptr || !BH_HAS(bh_policy, table, reconfigure)) continue;
      if (table->reconfigure == nullptr) continue;
      out.push_back(std::exchange(use, std::move(same)));
      out.back().file = part->use.file;
    }
  }
  return out;
}

namespace {

Result<void> set_config(Part &part, const PluginUse &use) {
  const auto refused = [&](bh_status code, std::string_view text) {
    return fail(code, "policies." + use.id + ": " + std::string(text));
  };
  const std::string_view schema = part.instance->library().description().config_schema;
  if (auto fits = check_config(schema, use.config_json); !fits.has_value()) {
    return refused(fits.error().code, fits.error().text);
  }
  const auto *table = part.instance->ext<bh_policy>(BH_EXT_POLICY);
  bh_error error = bh::make_error();
  const bh_status status =
      table->reconfigure(part.instance->self(), bh::str(use.config_json), &error);
  if (status != BH_OK) return refused(status, bh::text(error));
  part.use = use;
  return {};
}

}  // namespace

Result<bool> Policies::reconfigure(const std::vector<PluginUse> &uses) {
  std::vector<std::pair<Part *, PluginUse>> before;
  for (const PluginUse &use : uses) {
    for (const auto &part : parts_) {
      if (part->use.id != use.id) continue;
      const PluginUse was = part->use;
      if (auto done = set_config(*part, use); done.has_value()) {
        before.emplace_back(part.get(), was);
        continue;
      } else {
        for (const auto &[changed, old] : before) static_cast<void>(set_config(*changed, old));
        return std::unexpected(done.error());
      }
    }
  }
  return !uses.empty();
}

void Policies::rules_changed() {
  stack_.rules_changed();
  static_cast<void>(use());  // updates what the policies need
  core_.route().servers.reload.policy_changed();
}

void Policies::unanswered(std::uint64_t number, bool late) {
  stack_.forget(number);
  for (const auto &part : parts_) {
    if (part->policy_stub != nullptr) part->policy_stub->unanswered(number, late);
  }
}

bool Policies::settled() const {
  return std::none_of(parts_.begin(), parts_.end(), [](const auto &part) {
    return part->policy_stub != nullptr && part->policy_stub->is_awaited();
  });
}

void Policies::state_dropped(const std::string &compartment) {
  core_.log(
      BH_LOG_WARN, compartment,
      "the new version of the policy accepts no state (bh.state/1); its counters begin again");
}
void Policies::policy_decided(std::uint64_t exchange, const bh_verdict &verdict) {
  answered(exchange, Gate::from(verdict));
}
void Policies::policy_refused(std::uint64_t exchange, std::string_view why) {
  answered(exchange, Gate::failed("the policy failed: " + std::string(why)));
}
void Policies::policy_filtered(std::uint64_t question, bool listed) {
  filtered(question, listed, nullptr);
}

}  // namespace bulkhead
