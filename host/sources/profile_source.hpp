// Loads a profile from its layers: builtin, corporate, detected (settings of other programs), user,
// file, project and command line.
#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "command_line/arguments.hpp"
#include "profile/layer.hpp"
#include "profile/profile.hpp"

namespace bulkhead::program {

// The transports that a command needs: all except standard input and output (`served`, for
// `serve`), or only standard input and output (`stdio`). Other commands need none, because their
// client runs inside the process.
enum class Transports : std::uint8_t { none, served, stdio };
Transports transports_of(const Arguments &arguments) noexcept;

struct LoadedProfile {
  Profile profile;                      // includes state_dir and plugin_dirs
  std::string file;                     // empty: there is no configuration file
  std::string project;                  // the project file; empty: there is none
  std::vector<ProfileHold> holds = {};  // settings that a layer protects from changes
  std::uint64_t loaded_ms = 0;          // milliseconds since 1970, before the first file was read
};

// Returns the time of the newest change to a file that the profile was loaded from, or to the
// approvals, in milliseconds since 1970. Removed files are ignored.
std::uint64_t newest_change_ms(const Profile &profile);

// The default connect timeout for servers whose command may have to download them first (npx, uvx,
// docker ...). With a shorter timeout, the server would be killed during the download, and each
// retry would start the download again.
inline constexpr std::uint64_t launcher_connect_ms = 120'000;
bool downloads_first(std::string_view command);

// Added to the reason why a running gateway has disabled a server whose variable is not set.
inline constexpr std::string_view own_environment =
    "; variables are read from the gateway's own environment: restart the gateway with the "
    "variable "
    "set";

// The name of the layer that connectors.json defines (see connectors.hpp).
inline constexpr std::string_view user_layer = "user";

// Loads the profile. On failure, returns one line for each error, to be shown to the user
// ("file:line:col: path: text"). If `user_text` is set, it replaces the content of connectors.json.
std::expected<LoadedProfile, std::vector<std::string>> load_for(
    const Arguments &arguments, Transports transports,
    const std::optional<std::string> &user_text = std::nullopt);

// Loads the profile for commands that start no servers or plugins. Unlike load_for(), it does not
// require secrets to exist (ProfileUse::none).
std::expected<LoadedProfile, std::vector<std::string>> load_to_look(const Arguments &arguments,
                                                                    Transports transports);

// Calls load_for() and check_plugins(). For commands that start a gateway or apply the profile. If
// `arguments` are those of a gateway, the notes include names in rules that no server or tool has
// (unmatched_names.hpp).
std::expected<LoadedProfile, std::vector<std::string>> load_checked(const Arguments &arguments,
                                                                    Transports transports);

// Loads the profile of `bulkhead aggregator`, whose parent program provides the servers. Reads only
// the corporate profile and the file named by --config, if any, and ignores their transports.
std::expected<LoadedProfile, std::vector<std::string>> load_aggregator(const Arguments &arguments);

}  // namespace bulkhead::program
