// Assembles the layers of a profile: builtin, corp, user, the file, the project, the command line.
#pragma once

#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "command_line/arguments.hpp"
#include "profile/layer.hpp"
#include "profile/profile.hpp"

namespace bulkhead::program {

// The transports that a command needs: serve uses all except standard input and output, stdio uses
// only standard input and output, and other commands use none, because their client is inside the
// program.
enum class Transports : std::uint8_t { none, served, stdio };
// Returns the transports of `serve` or `stdio`.
Transports transports_of(const Arguments &arguments) noexcept;

struct LoadedProfile {
  Profile profile;                      // with state_dir and plugin_dirs set
  std::string file;                     // empty: no configuration file
  std::string project;                  // the project file in use; empty: none
  std::vector<ProfileHold> holds = {};  // settings that layers protect from changes
};

// The default connect time-out of a server whose command may first download it (npx, uvx, docker
// ...). A server that is killed during the download would start over each time.
inline constexpr std::uint64_t launcher_connect_ms = 120'000;
bool downloads_first(std::string_view command);

// The layer name of connectors.json (see connectors.hpp).
inline constexpr std::string_view user_layer = "user";

// Returns the profile, or every fault as a line for the user ("file:line:col: path: text").
// `user_text` replaces the content of connectors.json.
std::expected<LoadedProfile, std::vector<std::string>> load_for(
    const Arguments &arguments, Transports transports,
    const std::optional<std::string> &user_text = std::nullopt);

// Like load_for(), for commands that start no servers or plugins. Secrets need not exist
// (ProfileUse::none).
std::expected<LoadedProfile, std::vector<std::string>> load_to_look(const Arguments &arguments,
                                                                    Transports transports);

// Calls load_for() and then check_plugins(), for callers that start or apply the profile.
std::expected<LoadedProfile, std::vector<std::string>> load_checked(const Arguments &arguments,
                                                                    Transports transports);

// Returns the profile of `bulkhead aggregator`. It has no servers, and there is no default file. A
// file may set limits and other keys; its transports are ignored.
std::expected<LoadedProfile, std::vector<std::string>> load_aggregator(const Arguments &arguments);

}  // namespace bulkhead::program
