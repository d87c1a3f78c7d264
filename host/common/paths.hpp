// Returns the paths that depend on the user who runs the program.
//
// The results are not cached, so callers should request them once, at startup.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace bulkhead::program {

// Returns $HOME or, if it is unset, the home directory from the user database. If there is none,
// returns "/".
std::string home_dir();
std::string user_name();  // the numeric user ID if the name is unknown

// Returns $XDG_CONFIG_HOME/bulkhead/profile.toml, or ~/.config/bulkhead/profile.toml if the
// variable is unset. This is the profile that is used without --config.
std::string default_config_file();

// Returns the path of connectors.json, which contains the servers that were added with the
// connector API. It is in the same directory as default_config_file().
std::string user_layer_file();

// Returns $XDG_STATE_HOME/bulkhead, or ~/.local/state/bulkhead if the variable is unset.
std::string default_state_dir();

// Returns $XDG_DATA_HOME/bulkhead/plugins, or ~/.local/share/bulkhead/plugins if the variable is
// unset. `bulkhead plugin add` installs plugins there.
std::string user_plugin_dir();

// Returns the directory above the directory of the executable. If the program is installed, this is
// the prefix under which its other files are.
std::string own_prefix();

// Returns the directory of the plugins that are installed with this program:
// ../lib/bulkhead/plugins, relative to the directory of the executable.
std::string own_plugin_dir();

// Returns the directory of the templates for new plugins: ../share/bulkhead/template, relative to
// the directory of the executable.
std::string own_template_dir();

// Returns the files that this program consists of: its executable, and the shared libraries that
// are loaded.
std::vector<std::string> own_program_files();

// Returns the directories in which running gateways create their service sockets, in order of
// preference. They do not depend on the profile, so `bulkhead status` finds the gateways of all
// profiles.
std::vector<std::string> control_dirs();

// Creates the directory and its missing parents with mode 0700. If the directory exists and is
// accessible to others, changes its mode to 0700. Returns an error if it is a symbolic link or
// belongs to another user.
Result<void> make_private_dir(const std::string &path);

// Returns an absolute path without "..". Returns the path unchanged if it contains no ".." or if a
// folder before a ".." does not exist. Symbolic links before the last ".." are resolved, so later
// changes to them have no effect. Links after the last ".." are not resolved.
std::string without_parent_steps(const std::string &path);

// Removes ".." from the environment variables that the functions above use; see
// without_parent_steps(). If a folder before a ".." does not exist, the ".." is removed without
// accessing the file system. Must be called before other threads exist.
void remove_parent_steps_from_environment();

// Resolves symbolic links and "." and "..". Returns the path unchanged if it does not exist.
std::string resolved_path(const std::string &path);

// Replaces the home directory at the start of the path with "~", for messages.
std::string tilde(std::string_view path);

// Returns "what: reason" for an errno value. Used instead of strerror(), which is not thread-safe.
std::string describe_errno(std::string_view what, int error);

}  // namespace bulkhead::program
