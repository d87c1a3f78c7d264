// Importing the servers that other MCP clients have configured, for `bulkhead import`.
#pragma once

#include <string>
#include <vector>

namespace bulkhead {

struct FoundConfig {
  std::string client;  // "Claude Code", "VS Code", "Codex" ...
  std::string file;
  std::vector<std::string> section;  // the keys that lead to the table: {"mcp", "servers"}
  std::vector<std::string> servers;  // names found
  std::string error;                 // not readable, not JSON ...
  // The command line or the address of each server; credentials are masked.
  std::vector<std::string> commands = {};
  // Claude Code stores servers for each project folder too: the folder, if it is not `cwd`. These
  // are found to be shown; import_profile() ignores them.
  std::string other_project = {};
};

// Searches the files of the clients: the user's first, then, with `folder`, those of the folder
// `cwd`, which may have come with a repository. Files that do not exist or configure nothing are
// ignored; only regular files are read.
std::vector<FoundConfig> find_client_configs(const std::string &home, const std::string &cwd,
                                             bool folder);

// A TOML profile with the servers of these files. Values that look like credentials are not copied
// but become ${env:...} references, listed in *secrets as "NAME from FILE". Names that collide get
// a suffix. A server that load_profile() would reject is written as a comment with the reason, so
// that the text always loads once the listed variables are set.
std::string import_profile(const std::vector<FoundConfig> &found,
                           std::vector<std::string> *secrets);

}  // namespace bulkhead
