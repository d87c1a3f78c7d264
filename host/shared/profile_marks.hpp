// Compares the effective profiles of two processes part by part. Each part is reduced to a keyed
// hash, so neither process learns the other's values. Two processes with equal marks would start
// the same servers with the same credentials, rules and settings.
//
// The comparison covers the servers (with resolved references to the environment, and the file that
// each command resolves to in PATH), tools, policies, telemetry, services, connectors, all
// settings, environment variables that servers receive or that select a proxy (each is a part), and
// the working folder if a part of the profile depends on it. It does not cover transports, the
// origins of values, and first_list_wait_ms, which differs between `serve` and `stdio` by default.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "profile/profile.hpp"

namespace bulkhead::program {

// The part that is the working folder.
inline constexpr std::string_view folder_part = "working folder";

// The hash of each part, by its name: "server github", "policy default", "limits", "environment
// variable HOME".
using ProfileMarks = std::map<std::string, std::string>;

// `key` has mark_key_bytes random bytes, new for each comparison. `folder` is the absolute path of
// the working folder.
ProfileMarks marks_of(const Profile &profile, std::string_view folder, std::string_view key);

// Returns the names of the parts that differ or that only one of them has.
std::vector<std::string> different_parts(const ProfileMarks &a, const ProfileMarks &b);

// Returns true if a part is defined in a configuration file: it is neither an environment variable
// nor the working folder.
bool any_in_files(const std::vector<std::string> &parts);

// Returns the names of the servers that run in the gateway's working folder.
std::vector<std::string> servers_in_folder(const Profile &profile);

// Returns, for example, "server github, limits and 3 more".
std::string describe_parts(const std::vector<std::string> &parts);

}  // namespace bulkhead::program
