// Manages the host's policies: selects the ones that make decisions, reconfigures them, and
// receives their delayed verdicts.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "embed/host_core.hpp"
#include "embed/part.hpp"
#include "embed/policy_stack.hpp"
#include "embed/rewrite_checks.hpp"

namespace bulkhead {

class Policies final : public link::PolicyEvents {
 public:
  // `parts` contains the policy plugins in profile order.
  Policies(HostCore &core, const Parts &parts);

  // Connects the router's gate to the policy stack. Must be called once, after the router has been
  // created.
  void connect();
  // Activates the policies. Must be called after their plugins have started, and again when the
  // policies' needs change. Returns an error if a plugin in this process is not a policy or is not
  // running.
  Result<void> use();
  // Applies the limits of a new profile.
  void use_limits();
  // Records which policies are in effect. `changes` lists the differences from the previous
  // policies.
  void record(const std::vector<std::string> &changes) const;

  // Returns the new configurations of the policies that differ only in their configuration and can
  // be reconfigured at run time. In *next, these policies keep their current configuration.
  //
  // A policy is returned even if its plugin file has changed or is unknown: the running code
  // applies the new rules, and keep_fixed() reports the file.
  std::vector<PluginUse> extract_reloadable(Profile *next) const;
  // Reconfigures running policies. Returns true if the rules have changed. On error, all policies
  // keep their previous configuration.
  Result<bool> reconfigure(const std::vector<PluginUse> &uses);
  void rules_changed();

  // Receives a policy's delayed verdict. `policy` is the `self` pointer of the policy, or null for
  // the policy that was asked last.
  void answered(std::uint64_t exchange, Gate::Decision decision, const void *policy = nullptr);
  void filtered(std::uint64_t question, bool listed, const void *policy);
  // See RouterHooks::on_unanswered.
  void unanswered(std::uint64_t number, bool late);
  // Returns true if every policy that runs in another process is ready or has failed.
  bool settled() const;

 private:
  void watch(bool wanted);
  void policy_decided(std::uint64_t exchange, const bh_verdict &verdict) override;
  void policy_refused(std::uint64_t exchange, std::string_view why) override;
  void policy_filtered(std::uint64_t question, bool listed) override;
  void policy_changed() override { rules_changed(); }
  void process_unhealthy(const std::string &compartment) override {
    core_.report_unhealthy(compartment);
  }
  void state_dropped(const std::string &compartment) override;

  HostCore &core_;
  const Parts &parts_;
  std::unique_ptr<PolicyWatch> watch_;
  std::unique_ptr<RewriteChecks> rewrite_checks_;
  PolicyStack stack_;  // the policy of the router's gate
};

}  // namespace bulkhead
