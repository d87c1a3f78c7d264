// Compares the policies and rules that running gateways have in force with the profile's files.
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
  PolicyMark mark;    // of the policies in force
  bool same = false;  // the files have the same policies
};

// Returns the gateways that respond and were started with the profile `file` (empty: without a
// profile). `mark` identifies the policies in the files.
std::vector<RunningPolicy> running_policies(const std::string &file, const PolicyMark &mark);

// Returns one line of text for each gateway.
std::string describe_running(const std::vector<RunningPolicy> &running, const PolicyMark &mark);
// Returns a JSON array with an object for each gateway: "pid", "generation", "rules", "digest",
// "same".
std::string running_json(const std::vector<RunningPolicy> &running);

}  // namespace bulkhead::program
