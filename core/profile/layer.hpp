// Defines the input for loading a profile: layers of text, and the environment that is used to
// resolve references in them.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "profile/profile.hpp"

namespace bulkhead {

// Maximum size of one layer.
inline constexpr std::size_t kProfileBytes = 4u << 20;
// Maximum number of values in one layer.
inline constexpr std::size_t kProfileValues = 200'000;
// Maximum nesting depth of tables and arrays.
inline constexpr std::size_t kProfileDepth = 64;
// Maximum number of errors that load_profile() reports.
inline constexpr std::size_t kProfileErrors = 100;

// If a server's definition in a lenient layer is invalid, its disabled_reason begins with this
// text.
inline constexpr std::string_view kWrongDefinition = "its definition is invalid: ";

// Prefix of the disabled_reason of a server in a project file that is not approved.
inline constexpr std::string_view kNotApproved = "not approved: ";

// One source of the profile. Layers are ordered from lowest to highest priority. A higher layer's
// tables are merged key by key; its scalars and arrays replace those of lower layers. A server in a
// higher layer replaces the entire server with the same name. A plugin instance replaces the entire
// instance with the same name if its `plugin` differs. Of the enabled policies, only those of the
// highest layer that has any are used. The corporation's plugin_dirs are always searched first.
struct ProfileLayer {
  std::string name;  // "builtin", "corp", "user", "file", "project", "command line"
  // The file name that appears in messages. Relative paths in the layer are resolved against this
  // file's folder. ".json" and ".jsonc" files are parsed as JSON and ".toml" files as TOML. For
  // other files, the first character determines the format (TOML cannot start with '{' or '/').
  std::string file;
  std::string text;
  // The layer comes from a repository, and `file` is an absolute path. It may define only servers
  // whose names are not used in a lower layer. A server whose digest is not in `approved` is listed
  // as disabled, and its definition is not read (see read_project()).
  bool project = false;
  std::set<std::string, std::less<>> approved = {};
  // An invalid server in this layer does not make the profile invalid. Instead, the server is
  // listed as disabled with the error as the reason (kWrongDefinition), and a note is added.
  bool lenient = false;
  // The corporation's layer, named "corp". There is at most one. Its directives constrain higher
  // layers. The caller must have verified that only an administrator can write the file.
  bool corp = false;
  // The next layer is a profile that extends this one (with_ancestors()). The two count as one
  // layer.
  bool extended = false;
  // The layer contains the settings of another program ("claude", "gemini"). Only its servers are
  // read, and only if the profile sets detect_servers and mcpServers is editable.
  bool detected = false;
  // Files that would have been read instead of `file`, but do not exist. Servers must not be able
  // to create them.
  std::vector<std::string> absent = {};
};

// Which parts of the profile the caller starts. If a variable is unset, each server that uses it is
// disabled. In plugin tables and in the corporation's layer, an unset variable is an error if the
// caller starts the part that uses it; otherwise, the reference is left unexpanded and a note is
// added.
enum class ProfileUse : std::uint8_t {
  all,             // a gateway
  but_transports,  // a command that is itself the client
  none,            // a command that only displays the profile
};

struct ProfileEnvironment {
  // Returns the value of an environment variable, or nullopt if it is unset. Tests can replace this
  // function instead of calling setenv().
  std::function<std::optional<std::string>(const std::string &)> getenv;
  std::string home;
  ProfileUse use = ProfileUse::all;
};

// Reads a file. Returns BH_E_NOT_FOUND if the file does not exist, BH_E_IO if it is not readable
// (the message contains the reason), or BH_E_LIMIT if it is larger than kProfileBytes. The message
// ends with a code in the format of to_string(): "[file_not_found]", "[unreadable]" or
// "[too_large]". May block if the path is a pipe.
Result<ProfileLayer> read_profile_file(const std::string &path, std::string layer_name = "file");

// Reads a project file by its absolute path. The returned layer is named "project"; its `project`
// is set and its `approved` is empty. Returns the same errors as read_profile_file(), and BH_E_IO
// if the path is not a regular file, so the call never blocks.
Result<ProfileLayer> read_project_file(const std::string &path);

}  // namespace bulkhead
