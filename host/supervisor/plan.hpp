// Determines the compartments that a profile requires, and the slice of each compartment.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "compartment/slice.hpp"
#include "profile/profile.hpp"

namespace bulkhead::program {

// Facts that are not in the profile.
struct PlanFacts {
  std::int32_t log_level = 1;
  bool eager = true;
  bool is_root = false;
  bool service = false;         // there is a service socket
  std::string fingerprint_key;  // random key of this run
};

// Subdirectories of the state directory: "/plugins" for the files of telemetry plugins, "/audit"
// for the supervisor's signatures of these files.
inline constexpr std::string_view record_folders[] = {"/plugins", "/audit"};

// Returns 32 random bytes.
std::string random_key();

// Returns the slices: first the endpoint, which receives no credentials, then the control
// compartment if there is a service socket, then the compartments of servers, tools and plugins.
std::vector<Slice> plan_compartments(const Profile &profile, const PlanFacts &facts);

}  // namespace bulkhead::program
