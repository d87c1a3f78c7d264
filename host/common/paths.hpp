// Paths of the user who runs the program. Nothing is cached: call these at start.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace bulkhead::program {

// $HOME, otherwise the home folder in the user database; "/" if neither is known.
std::string home_dir();
std::string user_name();  // the numeric id if unknown

// $XDG_CONFIG_HOME/bulkhead/profile.toml, read without --config.
std::string default_config_file();

// connectors.json in the same folder: the servers that the connector API has added.
std::string user_layer_file();

// $XDG_STATE_HOME/bulkhead, otherwise ~/.local/state/bulkhead.
std::string default_state_dir();

// The plugins installed with this program: lib/bulkhead/plugins beside its bin folder.
std::string own_plugin_dir();

// The folders of running gateways' service sockets, in order of preference. They are independent of
// the profile: `bulkhead status` finds gateways of every profile.
std::vector<std::string> control_dirs();

// Creates the folder and its parents (0700 each). An error if it exists and is a link, belongs to
// another user, or is open to others.
Result<void> make_private_dir(const std::string &path);

// The path without symbolic links and dots; unchanged if it does not exist.
std::string resolved_path(const std::string &path);

// Replaces the home folder by "~", for messages.
std::string tilde(std::string_view path);

// Formats an errno value as "name: reason" without strerror(), which is not thread-safe.
std::string describe_errno(std::string_view what, int error);

}  // namespace bulkhead::program
