// The policy gate. Asks the policy plugin for decisions, and treats every failure of the policy as
// a refusal.
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
    std::string replacement;  // for Verdict::rewrite: the new arguments or the new result
    // BH_VERDICT_... as returned by the policy; 0 if there was no policy decision.
    std::uint32_t action = 0;
    bool warned = false;
    bool asks = false;  // for a refusal: the call is allowed if a human approves it
    // For a rewrite: the replacement is too large to be checked on the reactor thread; see
    // look_at().
    bool unread = false;
  };

  enum class Shown : std::uint8_t { no, yes, pending };

  // Rule names for refusals that come from the gate instead of a policy rule.
  static constexpr std::string_view failed_rule = "policy-failed", timeout_rule = "policy-timeout",
                                    pin_rule = "tool-pin";
  static Decision refusal(std::string rule, std::string reason);
  static Decision failed(std::string reason);
  static Decision timed_out(std::uint64_t after_ms);
  static Decision waits_full();  // used when limits.policy_waiting_bytes is reached

  // Sets the policy plugin. Without a plugin, all calls are allowed. If the needs of the plugin may
  // have changed, use() must be called again with the same plugin.
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

  // These functions ask the policy, and require a policy plugin. The decision may be pending; the
  // policy then reports it later, under the number in request.exchange.
  Decision decide(const bh_policy_request &request) const;
  Decision observe(const bh_policy_request &request, std::string_view result) const;
  // Sets *why if the policy has failed.
  Shown shows(const bh_policy_request &request, std::string *why) const;

  // Converts a policy's verdict. If the replacement is larger than DuplicateChecks::at_once, the
  // decision is marked `unread`.
  static Decision from(const bh_verdict &verdict);
  // Checks the replacement of a rewrite. If it is not valid JSON or has duplicate members, turns
  // the decision into a refusal. Thread-safe.
  static void look_at(Decision *rewrite);

  // Starts checking an `unread` replacement on another thread. Returns a pending decision, or a
  // refusal if the check cannot be started. `who` identifies the policy; the gate passes null.
  using ReadLater =
      std::function<Decision(std::uint64_t exchange, Decision rewrite, const void *who)>;
  // Sets the function that checks large replacements. If it is not set, they are checked on the
  // reactor thread.
  void read_with(ReadLater later) { later_ = std::move(later); }

 private:
  Decision read(std::uint64_t exchange, Decision decision) const;

  ReadLater later_;
  const bh_policy *table_ = nullptr;
  void *self_ = nullptr;
  std::uint32_t needs_ = 0;
};

}  // namespace bulkhead
