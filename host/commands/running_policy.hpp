// Running gateways with the profile that a command looks at: do they decide by the same policies
// and rules as its files say now?
//
// Thread: one. Asks the service sockets of this user.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "profile/profile.hpp"

namespace bulkhead::program {

struct RunningPolicy {
  std::uint64_t pid = 0;
  PolicyMark mark;    // of what is in force there
  bool same = false;  // as the files
};

// Of each gateway that was started with the profile `file` (empty: with none) and that answers.
// `mark`: of the files.
std::vector<RunningPolicy> running_policies(const std::string &file, const PolicyMark &mark);

// A line for each, for people.
std::string describe_running(const std::vector<RunningPolicy> &running, const PolicyMark &mark);
// A JSON array with an object for each: "pid", "generation", "rules", "digest", "same".
std::string running_json(const std::vector<RunningPolicy> &running);

}  // namespace bulkhead::program
