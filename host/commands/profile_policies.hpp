// Loads the policies of a profile without a gateway, and reports their decisions about a call.
// PolicyStack combines the decisions as in a gateway.
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

  // Prints the errors and returns false if a policy cannot be loaded.
  bool load();
  // If there is one policy, returns the result of its bh_explain.explain(). If there are several,
  // "request" and "response" are the combined decisions, and "policies" contains an object for each
  // policy in order: "policy" (its ID), "plugin", and either its own "request" and "response" or
  // the reason as "not_explained". A decision that depends on a policy that cannot explain it is
  // "unknown".
  Result<std::string> explain(std::string_view call) const;
  const std::vector<std::unique_ptr<LonePolicy>> &all() const { return policies_; }
  const std::string &file() const { return file_; }
  const PolicyMark &mark() const { return mark_; }
  // Returns the profile with the stored tool lists that can be read.
  const Profile &profile() const { return profile_; }

 private:
  const Arguments &arguments_;
  std::string file_;
  PolicyMark mark_;
  Profile profile_;
  std::vector<std::unique_ptr<LonePolicy>> policies_;
};

}  // namespace bulkhead::program
