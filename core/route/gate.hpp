// The policy gate: asks the policy plugin, and turns whatever goes wrong into a refusal.
// Owner: the Router. Thread: [io].
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
    std::string replacement;   // of arguments or result, for rewrite
    std::uint32_t action = 0;  // BH_VERDICT_..., as the policy said it; 0: it did not
    bool warned = false;
    bool asks = false;    // of a refusal: a person could allow it
    bool unread = false;  // of a rewrite: it is too large for the loop, see look_at()
  };

  enum class Shown : std::uint8_t { no, yes, pending };

  // The rules of refusals that no policy has decided.
  static constexpr std::string_view failed_rule = "policy-failed", timeout_rule = "policy-timeout",
                                    pin_rule = "tool-pin";
  static Decision refusal(std::string rule, std::string reason);
  static Decision failed(std::string reason);
  static Decision timed_out(std::uint64_t after_ms);

  // Without a policy everything is allowed. Again with the same: what it needs may be other now.
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

  // A verdict that came later, through bh_host_policy.decided. A replacement above
  // DuplicateChecks::at_once is unread.
  static Decision from(const bh_verdict &verdict);
  // What a policy writes is checked like any other input: it is valid JSON, without duplicate
  // members, or the decision becomes a refusal. Any thread.
  static void look_at(Decision *rewrite);

  // Has an unread replacement looked at elsewhere: pending, or a refusal. `who`: the policy.
  using ReadLater =
      std::function<Decision(std::uint64_t exchange, Decision rewrite, const void *who)>;
  // Without it large replacements are looked at on the loop, too.
  void read_with(ReadLater later) { later_ = std::move(later); }

 private:
  Decision read(std::uint64_t exchange, Decision decision) const;

  ReadLater later_;
  const bh_policy *table_ = nullptr;
  void *self_ = nullptr;
  std::uint32_t needs_ = 0;
};

}  // namespace bulkhead
