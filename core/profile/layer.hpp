// The input of a load: layers of text, and the environment that their references read.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "profile/profile.hpp"

namespace bulkhead {

inline constexpr std::size_t kProfileBytes = 4u << 20;  // one layer
inline constexpr std::size_t kProfileValues = 200'000;  // one layer
inline constexpr std::size_t kProfileDepth = 64;        // nested tables and arrays
inline constexpr std::size_t kProfileErrors = 100;      // of one load_profile()

// The beginning of the disabled_reason of a server whose definition in a lenient layer is invalid.
inline constexpr std::string_view kWrongDefinition = "its definition is wrong: ";

// One source, lowest priority first. Tables merge key by key, scalars and arrays replace; a server
// of a higher layer replaces the one of the same name completely, and so does a plugin instance
// with another `plugin`.
struct ProfileLayer {
  std::string name;  // "builtin", "corp", "file", "project", "command line"
  // For messages, and for relative paths in it. ".json" and ".jsonc" are read as JSON, ".toml" as
  // TOML, everything else by its first character (TOML cannot start with '{' or '/').
  std::string file;
  std::string text;
  // A file that came with a repository (`file` is its absolute path). It gives servers only, none
  // with a name that a lower layer has. Servers whose digest is not in `approved` are listed as
  // disabled, and nothing of their definition is read (see read_project()).
  bool project = false;
  std::set<std::string, std::less<>> approved = {};
  // An invalid server of this layer does not reject the profile: the server is listed as disabled,
  // with the error as the reason (kWrongDefinition), and a note is added.
  bool lenient = false;
  // The corporation's layer, at most one, named "corp": its directives bind the layers above it.
  // The caller has verified that only an administrator can write the file.
  bool corp = false;
  // The next layer is a profile that extends this one (with_ancestors()): both count as one layer.
  bool extended = false;
  // The settings of another program ("claude", "gemini"): only the servers are read, and only if
  // the profile has detect_servers and mcpServers is editable.
  bool detected = false;
};

// Which parts of the profile the caller starts. A variable that is not set disables the server
// that needs it. In tables of plugins and in the corporation's layer it is an error, unless the
// value is not used: then the reference stays as it is, with a note.
enum class ProfileUse : std::uint8_t {
  all,             // a gateway
  but_transports,  // a command that is its own client
  none,            // a command that only shows the profile: nothing is started
};

struct ProfileEnvironment {
  // Looks a variable up; nullopt: not set. Injected so that tests need no setenv.
  std::function<std::optional<std::string>(const std::string &)> getenv;
  std::string home;
  ProfileUse use = ProfileUse::all;
};

// Reads a whole file. BH_E_NOT_FOUND: no such file; BH_E_IO: not readable (the text has the
// reason); BH_E_LIMIT: larger than kProfileBytes. The text ends with the code as to_string() writes
// it: "[file_not_found]", "[unreadable]", "[too_large]". May block on a pipe.
Result<ProfileLayer> read_profile_file(const std::string &path, std::string layer_name = "file");

// Reads a project file, by its absolute path: the layer "project", with `project` set and nothing
// approved. Only a regular file is read (else BH_E_IO), so that the call never blocks.
Result<ProfileLayer> read_project_file(const std::string &path);

}  // namespace bulkhead
