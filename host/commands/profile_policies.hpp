// The policies of a profile, loaded without a gateway. Reports each policy's decision about a call
// and the combined decision, which PolicyStack computes as in a gateway.
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

  // Returns false after printing the errors.
  bool load();
  // Returns the result of bh_explain.explain() for `call`. With several policies, "request" and
  // "response" are the combined decisions. "policies" then has an object for each policy in order:
  // "policy" (its id), "plugin", and its own "request" and "response", or "not_explained" with the
  // reason. A decision that depends on a policy without explanations is "unknown".
  Result<std::string> explain(std::string_view call) const;
  const std::vector<std::unique_ptr<LonePolicy>> &all() const { return policies_; }
  const std::string &file() const { return file_; }
  const PolicyMark &mark() const { return mark_; }
  // The profile, with the lists of tools that a gateway stored, as far as they can be read.
  const Profile &profile() const { return profile_; }

 private:
  const Arguments &arguments_;
  std::string file_;
  PolicyMark mark_;
  Profile profile_;
  std::vector<std::unique_ptr<LonePolicy>> policies_;
};

}  // namespace bulkhead::program
