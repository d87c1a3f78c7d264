// Loads a profile's policies without a gateway, and reports what they decide about a call. As in a
// gateway, PolicyStack combines the decisions.
//
// Used on one thread.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "command_line/arguments.hpp"
#include "commands/lone_policy.hpp"
#include "profile/profile.hpp"

namespace bulkhead::program {

class ProfilePolicies {
 public:
  explicit ProfilePolicies(const Arguments &arguments) : arguments_(arguments) {}

  // Loads all policies. If a policy cannot be loaded, prints the errors and returns false.
  bool load();
  // If there is only one policy, returns the result of its bh_explain.explain(). If there are
  // several, "request" and "response" are the combined decisions, and "policies" contains one
  // object per policy, in order: "policy" (its ID), "plugin", and either the policy's "request" and
  // "response" or, in "not_explained", the reason why they are missing. If a decision depends on a
  // policy that cannot explain it, the decision is "unknown".
  Result<std::string> explain(std::string_view call) const;
  const std::vector<std::unique_ptr<LonePolicy>> &all() const { return policies_; }
  const std::string &file() const { return file_; }
  const PolicyMark &mark() const { return mark_; }
  // Returns the profile. It includes the stored tool lists, as far as they could be read.
  const Profile &profile() const { return profile_; }

 private:
  const Arguments &arguments_;
  std::string file_;
  PolicyMark mark_;
  Profile profile_;
  std::vector<std::unique_ptr<LonePolicy>> policies_;
};

}  // namespace bulkhead::program
