// Finds and imports the servers that are configured in other MCP clients, for `bulkhead import`.
#pragma once

#include <string>
#include <vector>

namespace bulkhead {

struct FoundConfig {
  std::string client;  // "Claude Code", "VS Code", "Codex" ...
  std::string file;
  // The keys that lead to the servers in the file, for example {"mcp", "servers"}.
  std::vector<std::string> section;
  std::vector<std::string> servers;  // the names of the servers
  std::string error;                 // why the file could not be used, for example invalid JSON
  // The command line or URL of each server, with credentials masked.
  std::vector<std::string> commands = {};
  // The project folder to which these servers belong, if it is not `cwd`; otherwise empty. Claude
  // Code stores servers per project. The servers of other projects are listed, but import_servers()
  // and import_profile() ignore them.
  std::string other_project = {};
  // The project folder of these servers, in which the client starts them. Empty for the user's own
  // servers.
  std::string folder = {};
};

// Searches for the settings files of clients: first the user's files and then, if `folder` is set,
// the files in the folder `cwd`, which may belong to a repository. Ignores files that do not exist
// or contain no servers. Reads only regular files.
std::vector<FoundConfig> find_client_configs(const std::string &home, const std::string &cwd,
                                             bool folder);

// A server that has been converted to the profile format.
struct ImportedServer {
  // The name in the profile. If different servers have the same name, a suffix is added.
  std::string name;
  std::string base;  // the name without the suffix
  // A comment with the server's origin, followed by its tables [mcpServers.NAME].
  std::string toml;
  std::string base_toml;  // if the name has a suffix, the tables with the name `base`
  std::string refused;    // the reason why load_profile() would reject the server; otherwise empty
  std::vector<std::string> variables;  // see import_profile()
  std::size_t config = 0;              // index into `found` of the file that contains the server
  // If an earlier enabled server with the same `base` starts the same program or has the same URL:
  // its name, `toml` with this server disabled for this reason, and the keys that differ, such as
  // "timeout".
  std::string same_as, disabled_toml;
  std::vector<std::string> differences;
  // A client's file in which the server is configured and not disabled.
  struct Place {
    std::size_t config;  // index into `found`
    std::string name;    // the server's name in that file
  };
  std::vector<Place> places;
};

// Returns the servers in these files, in order. Values of variables, headers and URLs that look
// like credentials are replaced; arguments that look like credentials are kept, with a comment.
// Entries for this gateway (see own_address.hpp) are omitted; *skipped receives their names. Equal
// servers are returned once. If a server differs from an earlier one with the same name only in
// settings, `same_as` is set.
std::vector<ImportedServer> import_servers(const std::vector<FoundConfig> &found,
                                           const std::vector<std::string> &listens,
                                           std::vector<std::string> *skipped = nullptr);

// Returns a TOML profile with the servers in these files. Credentials are replaced with ${env:NAME}
// references, as in import_servers(). *variables lists the variables that must be set, as "NAME
// from FILE": those of these references, and those to which the files themselves refer. Different
// servers with the same name get a suffix. A server that load_profile() would reject is written as
// a comment with the reason. The profile therefore always loads once the listed variables are set.
std::string import_profile(const std::vector<FoundConfig> &found,
                           std::vector<std::string> *variables,
                           const std::vector<std::string> &listens = {});

}  // namespace bulkhead
