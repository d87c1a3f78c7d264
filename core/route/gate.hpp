// The policy gate: asks the policy plugin for decisions and converts every failure to a refusal.
//
// Owner: the Router. Runs on the reactor thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "bulkhead/abi/ext/policy.h"

namespace bulkhead {

class Gate {
 public:
  enum class Verdict : std::uint8_t { allow, rewrite, refuse, pending };
  struct Decision {
    Verdict verdict = Verdict::allow;
    std::string rule;
    std::string reason;
    std::string replacement;   // for rewrite: the new arguments or result
    std::uint32_t action = 0;  // BH_VERDICT_... of the policy; 0 if no policy has decided
    bool warned = false;
    bool asks = false;    // for a refusal: human approval could allow the call
    bool unread = false;  // a rewrite too large for the reactor thread; see look_at()
  };

  enum class Shown : std::uint8_t { no, yes, pending };

  // Rule names of refusals that were not decided by a policy.
  static constexpr std::string_view failed_rule = "policy-failed", timeout_rule = "policy-timeout",
                                    pin_rule = "tool-pin";
  static Decision refusal(std::string rule, std::string reason);
  static Decision failed(std::string reason);
  static Decision timed_out(std::uint64_t after_ms);
  static Decision waits_full();  // limits.policy_waiting_bytes is reached

  // Sets the policy; without a policy, all calls are allowed. Must be called again with the same
  // policy when its needs may have changed.
  void use(const bh_policy *table, void *self);

  bool decides() const noexcept { return (needs_ & BH_POLICY_DECIDES) != 0; }
  bool reads_arguments() const noexcept { return (needs_ & BH_POLICY_READS_ARGUMENTS) != 0; }
  bool reads_definitions() const noexcept { return (needs_ & BH_POLICY_READS_DEFINITION) != 0; }
  bool observes() const noexcept { return (needs_ & BH_POLICY_READS_RESULTS) != 0; }
  bool judges_inputs() const noexcept { return (needs_ & BH_POLICY_JUDGES_INPUT) != 0; }
  bool judges_notifications() const noexcept {
    return (needs_ & BH_POLICY_JUDGES_NOTIFICATIONS) != 0;
  }
  bool filters() const noexcept { return (needs_ & BH_POLICY_FILTERS_LISTS) != 0; }

  Decision decide(const bh_policy_request &request) const;
  Decision observe(const bh_policy_request &request, std::string_view result) const;
  Shown shows(const bh_policy_request &request) const;

  // Returns the decision for a verdict that arrives through bh_host_policy.decided. A rewritten
  // text larger than DuplicateChecks::at_once is returned as unread.
  static Decision from(const bh_verdict &verdict);
  // Checks a rewritten text like any other input. If it is not valid JSON or has duplicate members,
  // the decision becomes a refusal. Thread-safe.
  static void look_at(Decision *rewrite);

  // Checks an unread rewritten text on another thread. Returns pending or a refusal. `who` is the
  // policy.
  using ReadLater =
      std::function<Decision(std::uint64_t exchange, Decision rewrite, const void *who)>;
  // If this function is not set, large rewritten texts are also checked on the reactor thread.
  void read_with(ReadLater later) { later_ = std::move(later); }

 private:
  Decision read(std::uint64_t exchange, Decision decision) const;

  ReadLater later_;
  const bh_policy *table_ = nullptr;
  void *self_ = nullptr;
  std::uint32_t needs_ = 0;
};

}  // namespace bulkhead
