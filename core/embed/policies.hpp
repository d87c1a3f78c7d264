// The policies of the host: which of them decide, their reload, and their answers.
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

  // Connects the router's gate with the stack; once, when there is a router.
  void connect();
  // Makes the started policies the ones that decide. Again: what they need may have changed.
  Result<void> use();
  // The limits of the profile have changed.
  void use_limits();
  // Records what decides from now on. `changes`: compared with what decided before.
  void record(const std::vector<std::string> &changes) const;

  // Takes the policies of *next out whose configuration alone has changed and that can take it
  // while they run: these are left in *next as they are now, and the wanted ones are returned. A
  // file that has changed, or is not known, does not keep the rules from being applied: the running
  // code takes them, and keep_fixed() names the file.
  std::vector<PluginUse> extract_reloadable(Profile *next) const;
  // Configures the running policies. True: the rules have changed. On an error all keep what they
  // have.
  Result<bool> reconfigure(const std::vector<PluginUse> &uses);
  void rules_changed();

  // A policy has answered later. `policy`: its self; null: the one that was asked last.
  void answered(std::uint64_t exchange, Gate::Decision decision, const void *policy = nullptr);
  void filtered(std::uint64_t question, bool listed, const void *policy);
  // See RouterHooks::on_unanswered.
  void unanswered(std::uint64_t number, bool late);
  // Each policy in another process can decide, or has failed.
  bool settled() const;

 private:
  void watch(bool wanted);
  void policy_decided(std::uint64_t exchange, const bh_verdict &verdict) override;
  void policy_refused(std::uint64_t exchange, std::string_view why) override;
  void policy_filtered(std::uint64_t question, bool listed) override;
  void policy_changed() override { rules_changed(); }
  void process_useless(const std::string &compartment) override {
    core_.report_unhealthy(compartment);
  }

  HostCore &core_;
  const Parts &parts_;
  std::unique_ptr<PolicyWatch> watch_;
  std::unique_ptr<RewriteChecks> rewrite_checks_;
  PolicyStack stack_;  // what the router's gate asks
};

}  // namespace bulkhead
