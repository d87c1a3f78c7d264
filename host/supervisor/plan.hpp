// Which compartments a profile needs, and what each of them gets.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "compartment/slice.hpp"
#include "profile/profile.hpp"

namespace bulkhead::program {

// What the program knows beyond the profile.
struct PlanFacts {
  std::int32_t log_level = 1;
  bool eager = true;
  bool is_root = false;
  bool service = false;         // there is a service socket
  std::string fingerprint_key;  // random, of this run
};

// Below the state folder: what telemetry keeps, and what the supervisor has signed of it.
inline constexpr std::string_view record_folders[] = {"/plugins", "/audit"};

// A key of 32 random bytes.
std::string random_key();

// The endpoint first, without credentials; then the one of the service socket, and those that its
// servers and tools have a use for.
std::vector<Slice> plan_compartments(const Profile &profile, const PlanFacts &facts);

}  // namespace bulkhead::program
