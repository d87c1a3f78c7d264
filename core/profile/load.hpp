// Reading profiles: layers of text in, one Profile or every error out.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "profile/profile.hpp"

namespace bulkhead {

// One source, lowest priority first. Tables merge key by key, scalars and arrays replace; a server
// of a higher layer replaces the one of the same name whole.
struct ProfileLayer {
  std::string name;  // "builtin", "file", "command line"
  std::string file;  // for messages; ".json"/".jsonc" is read as JSON, everything else as TOML
  std::string text;
};

struct ProfileEnvironment {
  // Looks a variable up; nullopt: not set. Injected so that tests need no setenv.
  std::function<std::optional<std::string>(const std::string &)> getenv;
  std::string home;
};

// The whole profile, or all that is wrong with it (at most 100 errors).
std::variant<Profile, std::vector<ProfileError>> load_profile(
    const std::vector<ProfileLayer> &layers, const ProfileEnvironment &environment);

// What other programs have configured, for `bulkhead import`.
struct FoundConfig {
  std::string client;  // "Claude Code", "Claude Desktop", "VS Code", "Cursor", "Gemini CLI"
  std::string file;
  std::vector<std::string> servers;   // names found
  std::string error;                  // not readable, not JSON ...
};
std::vector<FoundConfig> find_client_configs(const std::string &home, const std::string &cwd);

// A TOML profile with the servers of these files (values with credentials become ${env:...}
// references, listed in *secrets as "NAME from FILE"). Names that collide get a suffix.
std::string import_profile(const std::vector<FoundConfig> &found,
                           std::vector<std::string> *secrets);

}  // namespace bulkhead
