// Compares the effective profiles of two processes, part by part, without revealing either: each
// part is reduced to a keyed hash. Two processes whose marks are equal would start the same servers
// with the same credentials, rules and settings.
// The comparison covers the servers (with resolved references to the environment, and the file that
// each command resolves to in PATH), tools, policies, telemetry and services, the connectors, all
// settings, the environment variables that servers receive or that select a proxy, and the working
// folder if a part of the profile depends on it. It does not cover transports, the origins of
// values, and first_list_wait_ms, which differs between `serve` and `stdio` by default.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "profile/profile.hpp"

namespace bulkhead::program {

// By the name of the part: "server github", "policy default", "limits", "environment".
using ProfileMarks = std::map<std::string, std::string>;

// key: chosen at random for each comparison, mark_key_bytes. folder: the working folder, absolute.
ProfileMarks marks_of(const Profile &profile, std::string_view folder, std::string_view key);

// The names of the parts that differ or that only one of them has.
std::vector<std::string> different_parts(const ProfileMarks &a, const ProfileMarks &b);

// "server github, limits and 3 more".
std::string describe_parts(const std::vector<std::string> &parts);

}  // namespace bulkhead::program
