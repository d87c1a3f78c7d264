// Compares the policies that running gateways use with the policies in the profile.
//
// Used on one thread. Sends requests to the service sockets of this user.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "profile/profile.hpp"

namespace bulkhead::program {

struct RunningPolicy {
  std::uint64_t pid = 0;
  PolicyMark mark;    // identifies the policies in force
  bool same = false;  // the profile has the same policies
};

// Returns the gateways that were started with the profile `file` and that respond. If `file` is
// empty, returns the gateways that have no profile file. `mark` identifies the policies in the
// profile.
std::vector<RunningPolicy> running_policies(const std::string &file, const PolicyMark &mark);

// Returns a line for each gateway. `unset` is true if a variable that the policies use is not set
// in this process, so that digests cannot be compared.
std::string describe_running(const std::vector<RunningPolicy> &running, const PolicyMark &mark,
                             bool unset);
// Returns a JSON array with an object for each gateway: "pid", "generation", "rules", "digest" and
// "same", which is null if digests cannot be compared.
std::string running_json(const std::vector<RunningPolicy> &running, const PolicyMark &mark,
                         bool unset);

}  // namespace bulkhead::program
