// Puts the layers of a profile together: builtin, corp, user, the file, the project, the command
// line.
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

// Which transports a command needs: serve everything but standard input and output, stdio only
// those, the others none (they are clients inside the program).
enum class Transports : std::uint8_t { none, served, stdio };

struct LoadedProfile {
  Profile profile;                      // state_dir and plugin_dirs are filled in
  std::string file;                     // empty: nothing is configured
  std::string project;                  // the project file that was read; empty: none
  std::vector<ProfileHold> holds = {};  // what its layers keep from other changes
};

// How long a server may take to answer its first message when its command may have to download it
// first (npx, uvx, docker ...) and the file says nothing: killed half-way, it would start over for
// ever.
inline constexpr std::uint64_t launcher_connect_ms = 120'000;
bool downloads_first(std::string_view command);

// The name of the layer of connectors.json (see connectors.hpp).
inline constexpr std::string_view user_layer = "user";

// The profile, or every mistake as a line for people ("file:line:col: path: what"). `user_text`: in
// place of what connectors.json holds.
std::expected<LoadedProfile, std::vector<std::string>> load_for(
    const Arguments &arguments, Transports transports,
    const std::optional<std::string> &user_text = std::nullopt);

// The same for a command that starts nothing of it: no secret has to be there (ProfileUse::none).
std::expected<LoadedProfile, std::vector<std::string>> load_to_look(const Arguments &arguments,
                                                                    Transports transports);

// load_for(), and then what plugin_check.hpp finds: for whoever is about to start or apply it.
std::expected<LoadedProfile, std::vector<std::string>> load_checked(const Arguments &arguments,
                                                                    Transports transports);

// The profile of `bulkhead aggregator`: no server of its own and no default file. A file that is
// named may set limits and more; its transports are left out.
std::expected<LoadedProfile, std::vector<std::string>> load_aggregator(const Arguments &arguments);

}  // namespace bulkhead::program
