// The input of a load: layers of text, and the environment in which their references are resolved.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "profile/profile.hpp"

namespace bulkhead {

inline constexpr std::size_t kProfileBytes = 4u << 20;  // of one layer
inline constexpr std::size_t kProfileValues = 200'000;  // in one layer
inline constexpr std::size_t kProfileDepth = 64;        // nested tables and arrays
inline constexpr std::size_t kProfileErrors = 100;      // reported by one load_profile()

// Prefix of disabled_reason for a server whose definition in a lenient layer is invalid.
inline constexpr std::string_view kWrongDefinition = "its definition is invalid: ";

// One source of the profile. Layers are ordered from lowest to highest priority. Tables are merged
// key by key; scalars and arrays are replaced. A server in a higher layer completely replaces the
// server with the same name. A plugin instance is also replaced completely if its `plugin` differs.
struct ProfileLayer {
  std::string name;  // "builtin", "corp", "file", "project", "command line"
  // The name shown in messages. Relative paths start at this file's folder. ".json" and ".jsonc"
  // files are read as JSON, ".toml" files as TOML, and others according to their first character
  // (TOML cannot start with '{' or '/').
  std::string file;
  std::string text;
  // The file comes from a repository (`file` is its absolute path). It can only define servers, and
  // only with names that no lower layer uses. A server whose digest is not in `approved` is listed
  // as disabled, and its definition is not read (see read_project()).
  bool project = false;
  std::set<std::string, std::less<>> approved = {};
  // An invalid server in this layer does not make the profile invalid. The server is listed as
  // disabled, with the error as the reason (kWrongDefinition), and a note is added.
  bool lenient = false;
  // The corporation's layer (at most one, named "corp"). Its directives constrain higher layers.
  // The caller has verified that only an administrator can write the file.
  bool corp = false;
  // The next layer is a profile that extends this layer (with_ancestors()). The two count as one
  // layer.
  bool extended = false;
  // The program whose settings this layer contains ("claude", "gemini"). Only the servers are read,
  // and only if the profile sets detect_servers and mcpServers is editable.
  bool detected = false;
};

// The parts of the profile that the caller starts. If a variable is not set, each server that uses
// it is disabled. In plugin tables and in the corporation's layer, an unset variable is an error
// unless the value is unused. In that case, the reference is left unexpanded and a note is added.
enum class ProfileUse : std::uint8_t {
  all,             // a gateway
  but_transports,  // a command that is itself the client
  none,            // a command that only shows the profile
};

struct ProfileEnvironment {
  // Looks up a variable; returns nullopt if it is not set. A function, so tests do not have to call
  // setenv().
  std::function<std::optional<std::string>(const std::string &)> getenv;
  std::string home;
  ProfileUse use = ProfileUse::all;
};

// Reads a file. Returns BH_E_NOT_FOUND if there is no such file, BH_E_IO if it is not readable (the
// message has the reason), and BH_E_LIMIT if it is larger than kProfileBytes. The message ends with
// the code in the format of to_string(): "[file_not_found]", "[unreadable]", "[too_large]". May
// block on a pipe.
Result<ProfileLayer> read_profile_file(const std::string &path, std::string layer_name = "file");

// Reads a project file by its absolute path. The returned layer is named "project", with `project`
// set and no approvals. Reads only regular files (otherwise BH_E_IO), so the call never blocks.
Result<ProfileLayer> read_project_file(const std::string &path);

}  // namespace bulkhead
