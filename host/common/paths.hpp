// Where things are for the user who runs the program. Nothing is cached: call these at start.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace bulkhead::program {

// $HOME, else the password database's; "/" when neither is known.
std::string home_dir();
std::string user_name();  // else the number

// $XDG_CONFIG_HOME/bulkhead/profile.toml, read when no --config is given.
std::string default_config_file();

// connectors.json beside it: the servers that the connector API has added.
std::string user_layer_file();

// $XDG_STATE_HOME/bulkhead, else ~/.local/state/bulkhead.
std::string default_state_dir();

// The plugins that came with this program: lib/bulkhead/plugins beside its bin folder.
std::string own_plugin_dir();

// Folders in which running gateways have their control sockets, best first. They do not depend on
// the profile: `bulkhead status` finds gateways of every profile.
std::vector<std::string> control_dirs();

// Makes the folder and its parents (0700 each). An error when it exists and is a link, is another
// user's, or is open to others.
Result<void> make_private_dir(const std::string &path);

// The path without symbolic links and dots; as it is where there is nothing.
std::string resolved_path(const std::string &path);

// "~/x" for what is under home, for messages to people.
std::string tilde(std::string_view path);

// "name: why" of an errno value, without the thread-unsafe strerror().
std::string describe_errno(std::string_view what, int error);

}  // namespace bulkhead::program
