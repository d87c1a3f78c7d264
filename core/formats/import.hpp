// Imports servers that are configured in other MCP clients, for `bulkhead import`.
#pragma once

#include <string>
#include <vector>

namespace bulkhead {

struct FoundConfig {
  std::string client;  // "Claude Code", "VS Code", "Codex" ...
  std::string file;
  std::vector<std::string> section;  // the keys that lead to the table: {"mcp", "servers"}
  std::vector<std::string> servers;  // names of the servers in the table
  std::string error;                 // why the file could not be used (invalid JSON ...)
  // The command line or URL of each server, with credentials masked.
  std::vector<std::string> commands = {};
  // The project folder of these servers if it differs from `cwd`; otherwise empty. Claude Code also
  // stores servers for each project. They are shown, but import_profile() ignores them.
  std::string other_project = {};
};

// Searches for the clients' settings files: first the user's files and then, if `folder` is set,
// the files in the folder `cwd`, which may belong to a repository. Files that are missing or
// configure no servers are ignored. Only regular files are read.
std::vector<FoundConfig> find_client_configs(const std::string &home, const std::string &cwd,
                                             bool folder);

// A server converted for a profile.
struct ImportedServer {
  std::string name;     // in the profile; a suffix distinguishes different servers of the same name
  std::string base;     // the name without the suffix
  std::string toml;     // a comment with its origin, then its tables [mcpServers.NAME]
  std::string refused;  // the reason why load_profile() would reject it, or empty
  std::vector<std::string> secrets;  // see import_profile()
  std::size_t config = 0;            // the file that it comes from, as an index into `found`
  // A client's file that contains the server and does not disable it.
  struct Place {
    std::size_t config;  // index into `found`
    std::string name;    // the server's name in that file
  };
  std::vector<Place> places;
};

// Returns the servers in these files in order, without credentials. Entries for this gateway
// (command `bulkhead`, or a loopback URL with the port of one of `listens`) are omitted.
std::vector<ImportedServer> import_servers(const std::vector<FoundConfig> &found,
                                           const std::vector<std::string> &listens);

// Returns a TOML profile with the servers in these files. Values that look like credentials are
// replaced with ${env:...} references, which are listed in *secrets as "NAME from FILE". Colliding
// names get a suffix. A server that load_profile() would reject is written as a comment with the
// reason, so the result always loads once the listed variables are set.
std::string import_profile(const std::vector<FoundConfig> &found, std::vector<std::string> *secrets,
                           const std::vector<std::string> &listens = {});

}  // namespace bulkhead
