// The policies of the host: which of them decide, their reload and their answers.
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
  // `parts`: the policy plugins, in the order of the profile.
  Policies(HostCore &core, const Parts &parts);

  // Connects the router's gate with the stack. Call it once, after the router is created.
  void connect();
  // Makes the started policies decide. Call it again if their needs have changed.
  Result<void> use();
  // Applies the limits of a changed profile.
  void use_limits();
  // Records which policies decide from now on. `changes`: differences from the previous ones.
  void record(const std::vector<std::string> &changes) const;

  // Removes from *next the policies that can be reconfigured while they run and whose configuration
  // alone has changed. *next keeps their current configuration; the wanted ones are returned. A
  // changed or unknown plugin file does not prevent this: the running code takes the rules, and
  // keep_fixed() names the file.
  std::vector<PluginUse> extract_reloadable(Profile *next) const;
  // Configures the running policies. True: the rules have changed. On an error all of them keep
  // their configuration.
  Result<bool> reconfigure(const std::vector<PluginUse> &uses);
  void rules_changed();

  // Receives a later answer of a policy. `policy`: its self; null: the policy that was asked last.
  void answered(std::uint64_t exchange, Gate::Decision decision, const void *policy = nullptr);
  void filtered(std::uint64_t question, bool listed, const void *policy);
  // See RouterHooks::on_unanswered.
  void unanswered(std::uint64_t number, bool late);
  // True if each policy in another process can decide or has failed.
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

  HostCore &core_;
  const Parts &parts_;
  std::unique_ptr<PolicyWatch> watch_;
  std::unique_ptr<RewriteChecks> rewrite_checks_;
  PolicyStack stack_;  // asked by the router's gate
};

}  // namespace bulkhead
