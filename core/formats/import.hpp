// Importing servers that are configured in other MCP clients, for `bulkhead import`.
#pragma once

#include <string>
#include <vector>

namespace bulkhead {

struct FoundConfig {
  std::string client;  // "Claude Code", "VS Code", "Codex" ...
  std::string file;
  std::vector<std::string> section;  // the keys that lead to the table: {"mcp", "servers"}
  std::vector<std::string> servers;  // the names found
  std::string error;                 // not readable, not JSON, or another reason
  // The command line or URL of each server, with credentials masked.
  std::vector<std::string> commands = {};
  // The project folder of these servers, if it is not `cwd`: Claude Code also stores servers for
  // each project. Such servers are only shown; import_profile() ignores them.
  std::string other_project = {};
};

// Searches the files of the clients: first the user's files, then (if `folder` is set) the files in
// the folder `cwd`, which may come from a repository. Files that do not exist or configure nothing
// are ignored. Only regular files are read.
std::vector<FoundConfig> find_client_configs(const std::string &home, const std::string &cwd,
                                             bool folder);

// A server as it is imported.
struct ImportedServer {
  std::string name;     // in the profile; a suffix separates different servers of one name
  std::string base;     // the name without the suffix
  std::string toml;     // a comment with its origin, and its tables [mcpServers.NAME]
  std::string refused;  // why load_profile() would reject it; empty: it would not
  std::vector<std::string> secrets;  // as those of import_profile()
  std::size_t config = 0;            // the file that it is from, as an index of `found`
  // Everywhere a client has it enabled.
  struct Place {
    std::size_t config;  // an index of `found`
    std::string name;    // in that file
  };
  std::vector<Place> places;
};

// The servers of these files, in their order, without credentials and without entries for this
// gateway: a command `bulkhead`, or a loopback URL with the port of one of the addresses `listens`.
std::vector<ImportedServer> import_servers(const std::vector<FoundConfig> &found,
                                           const std::vector<std::string> &listens);

// A TOML profile with the servers of these files. Values that look like credentials are not copied
// but become ${env:...} references, listed in *secrets as "NAME from FILE". Names that collide get
// a suffix. A server that load_profile() would reject is written as a comment with the reason, so
// that the text always loads once the listed variables are set.
std::string import_profile(const std::vector<FoundConfig> &found, std::vector<std::string> *secrets,
                           const std::vector<std::string> &listens = {});

}  // namespace bulkhead
