// Paths of the user who runs the program. Nothing is cached, so call these functions at start.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace bulkhead::program {

// Returns $HOME, otherwise the home folder in the user database, or "/" if neither is known.
std::string home_dir();
std::string user_name();  // the numeric id if unknown

// Returns $XDG_CONFIG_HOME/bulkhead/profile.toml, the file that is read without --config.
std::string default_config_file();

// Returns connectors.json in the same folder, which contains the servers added with the connector
// API.
std::string user_layer_file();

// Returns $XDG_STATE_HOME/bulkhead, otherwise ~/.local/state/bulkhead.
std::string default_state_dir();

// Returns the folder of plugins installed with this program: lib/bulkhead/plugins next to its bin
// folder.
std::string own_plugin_dir();

// Returns the folders of the service sockets of running gateways, in order of preference. The
// folders do not depend on the profile, so `bulkhead status` finds the gateways of all profiles.
std::vector<std::string> control_dirs();

// Creates the folder and its parents (0700 each). Returns an error if the folder exists and is a
// link, belongs to another user, or is open to others.
Result<void> make_private_dir(const std::string &path);

// Returns the path without symbolic links and dots, or unchanged if it does not exist.
std::string resolved_path(const std::string &path);

// Replaces the home folder with "~", for messages.
std::string tilde(std::string_view path);

// Formats an errno value as "name: reason" without strerror(), which is not thread-safe.
std::string describe_errno(std::string_view what, int error);

}  // namespace bulkhead::program
