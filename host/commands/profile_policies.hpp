// The policies of a profile without a gateway: what each would decide about a call, and what comes
// of it. Several are asked by the PolicyStack itself, as a gateway would.
//
// Thread: one.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "command_line/arguments.hpp"
#include "commands/lone_policy.hpp"

namespace bulkhead::program {

class ProfilePolicies {
 public:
  explicit ProfilePolicies(const Arguments &arguments) : arguments_(arguments) {}

  // False: the mistakes have been printed.
  bool load();
  // What bh_explain.explain() says of `call`. Of several policies "request" and "response" are what
  // comes of all of them, and "policies" has an object for each, in order: "policy" (its id),
  // "plugin", and "request" and "response" as it says them, or "not_explained" with the reason. A
  // decision that hangs on a policy that cannot explain itself is "unknown".
  Result<std::string> explain(std::string_view call) const;
  const std::vector<std::unique_ptr<LonePolicy>> &all() const { return policies_; }
  const std::string &file() const { return file_; }
  const PolicyMark &mark() const { return mark_; }

 private:
  const Arguments &arguments_;
  std::string file_;
  PolicyMark mark_;
  std::vector<std::unique_ptr<LonePolicy>> policies_;
};

}  // namespace bulkhead::program
