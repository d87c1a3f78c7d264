// Reading profiles: layers of text in, one Profile or every error out.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.hpp"
#include "profile/profile.hpp"

namespace bulkhead {

inline constexpr std::size_t kProfileBytes = 4u << 20;  // one layer
inline constexpr std::size_t kProfileValues = 200'000;  // one layer
inline constexpr std::size_t kProfileDepth = 64;        // tables and arrays inside each other
inline constexpr std::size_t kProfileErrors = 100;      // of one load_profile()

// One source, lowest priority first. Tables merge key by key, scalars and arrays replace; a server
// of a higher layer replaces the one of the same name whole, and so does a plugin instance whose
// `plugin` is another one.
// What the reason of a server begins with that a lenient layer has wrong.
inline constexpr std::string_view kWrongDefinition = "its definition is wrong: ";

struct ProfileLayer {
  std::string name;  // "builtin", "corp", "file", "project", "command line"
  // For messages, and for relative paths in it. ".json" and ".jsonc" are read as JSON, ".toml" as
  // TOML, everything else by its first character (TOML cannot start with '{' or '/').
  std::string file;
  std::string text;
  // A file that came with a repository (`file` is its absolute path). It gives servers only, none
  // with a name that a lower layer has. Those whose digest is not in `approved` are listed as
  // disabled, and nothing of their definition is read (see profile/project.hpp).
  bool project = false;
  std::set<std::string, std::less<>> approved = {};
  // A mistake in a server of this layer does not refuse the profile: the server is listed as
  // disabled, with the mistake as the reason (kWrongDefinition), and there is a note.
  bool lenient = false;
  // What the corporation says, at most one layer, called "corp": its directives bind the layers
  // above it. Whoever sets this has seen that only an administrator can write the file.
  bool corp = false;
  // The next layer is a profile that extends this one (profile/extends.hpp): together they are one.
  bool extended = false;
  // What another program has configured ("claude", "gemini"): of its text only the servers count,
  // and those only where the profile looks for them and mcpServers can be edited.
  bool detected = false;
};

// Which values whoever loads a profile uses. A variable that is not set disables the server that
// needs it. In tables of plugins and in the corporation's layer it is an error, but where the value
// is not used: there the reference stays as it is, with a note.
enum class ProfileUse : std::uint8_t {
  all,             // a gateway
  but_transports,  // a command that is its own client
  none,            // a command that only looks at the profile: nothing of it is started
};

struct ProfileEnvironment {
  // Looks a variable up; nullopt: not set. Injected so that tests need no setenv.
  std::function<std::optional<std::string>(const std::string &)> getenv;
  std::string home;
  ProfileUse use = ProfileUse::all;
};

// The whole profile, or all that is wrong with it (at most 100 errors). `holds`, if given, gets
// what the layers keep from whoever changes the profile otherwise.
std::variant<Profile, std::vector<ProfileError>> load_profile(
    const std::vector<ProfileLayer> &layers, const ProfileEnvironment &environment,
    std::vector<ProfileHold> *holds = nullptr);

// Reads one file whole. BH_E_NOT_FOUND: no such file; BH_E_IO: not readable (the text says why);
// BH_E_LIMIT: larger than kProfileBytes. The text ends with the code as to_string() writes it:
// "[file_not_found]", "[unreadable]", "[too_large]". May block on a pipe.
Result<ProfileLayer> read_profile_file(const std::string &path, std::string layer_name = "file");

// The same for a project file, by its absolute path: the layer "project", with `project` set and
// nothing approved. Only a regular file is read (else BH_E_IO), so that it never blocks.
Result<ProfileLayer> read_project_file(const std::string &path);

// What other programs have configured, for `bulkhead import`.
struct FoundConfig {
  std::string client;  // "Claude Code", "Claude Desktop", "VS Code", "Cursor", "Gemini CLI"
  std::string file;
  std::vector<std::string> section;  // the keys that lead to the table: {"mcp", "servers"}
  std::vector<std::string> servers;  // names found
  std::string error;                 // not readable, not JSON ...
  // Of each server, what it runs or the address it has; credentials are masked.
  std::vector<std::string> commands = {};
  // Claude Code keeps servers for each project folder too: the folder, where it is not `cwd`. They
  // are found to be shown; import_profile() leaves them out.
  std::string other_project = {};
};
// Looks where the clients keep their files, the user's first, then, with `folder`, those of the
// folder `cwd`, which may have come with a repository. Files that do not exist or configure nothing
// are left out; only regular files are read.
std::vector<FoundConfig> find_client_configs(const std::string &home, const std::string &cwd,
                                             bool folder);

// A TOML profile with the servers of these files. Values that look like credentials are not copied
// but become ${env:...} references, listed in *secrets as "NAME from FILE". Names that collide get
// a suffix. What load_profile() would refuse is there as a comment with the reason, so that the
// text always loads once the listed variables are set.
std::string import_profile(const std::vector<FoundConfig> &found,
                           std::vector<std::string> *secrets);

}  // namespace bulkhead
