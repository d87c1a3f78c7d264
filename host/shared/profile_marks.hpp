// Compares the effective profiles of two processes. If all marks are equal, both processes would
// start the same servers with the same credentials, rules and settings.
//
// A profile is divided into parts. The mark of a part is its keyed hash, so neither process learns
// the other's values.
//
// The following are compared: servers (after references to the environment have been resolved), the
// files to which their commands resolve in PATH, tools, policies, telemetry, services,
// connectors, all settings, environment variables that are passed to servers or that select a
// proxy, and the working directory if the profile depends on it.
//
// The following are not compared: servers of a project file that are not approved, transports,
// metrics_listen, the origins of values, and first_list_wait_ms, whose default differs between
// `serve` and `stdio`.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "profile/profile.hpp"

namespace bulkhead::program {

// The name of the part that contains the working directory.
inline constexpr std::string_view folder_part = "working directory";

// Maps each part's name to its hash. Examples of part names are "server github", "program of server
// github", "policy default", "limits" and "environment variable HOME".
using ProfileMarks = std::map<std::string, std::string>;

// Returns the names of a server's two parts: its definition, and the program that PATH selects for
// its command. The second part exists only if the server is not disabled and the command has no
// slash.
std::string server_part(std::string_view server);
std::string program_part(std::string_view server);

// Returns the server's command. If the command has no slash and the server is not disabled, returns
// the file to which it resolves in PATH of this process, or an empty string if there is none.
std::string selected_program(const ServerDef &def);

// `key` consists of mark_key_bytes random characters and must be new for each comparison. `folder`
// is the absolute path of the working directory.
ProfileMarks marks_of(const Profile &profile, std::string_view folder, std::string_view key);

// Returns the names of the parts that differ or exist in only one of the profiles. If a server's
// definition differs and its program exists in only one profile, the program is omitted.
std::vector<std::string> different_parts(const ProfileMarks &a, const ProfileMarks &b);

// Returns true if at least one part is defined in configuration files, i.e. is neither an
// environment variable, nor the program of a server, nor the working directory.
bool any_in_files(const std::vector<std::string> &parts);

// Returns the names of a project file's servers that are not used because they are not approved.
std::vector<std::string> unapproved_servers(const Profile &profile);

// Returns the names of the servers that run in the gateway's working directory or in a directory
// relative to it.
std::vector<std::string> servers_in_folder(const Profile &profile);

// Messages name at most this many parts.
inline constexpr std::size_t max_named_parts = 3;
// Returns, for example, "server github, limits, naming and 3 more".
std::string describe_parts(const std::vector<std::string> &parts);

}  // namespace bulkhead::program
