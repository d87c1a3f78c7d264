// Implements MCP resources: files in the workspaces, identified by file:// URIs with absolute
// paths.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "builtin-files/tools.hpp"
#include "builtin-files/watcher.hpp"

namespace builtin_files {

// Returns the JSON array for resources/templates/list, with one template per workspace.
std::string resource_templates(const std::vector<Workspace> &workspaces);

// Returns the percent-encoded file:// URI of a file.
std::string file_uri(const Workspace &workspace, std::string_view path);

// A file found by its URI. `workspace` is null if the URI is not a path in a workspace. The file
// need not exist.
struct Located {
  const Workspace *workspace = nullptr;
  std::string path;  // relative to the workspace
};
Located locate(const std::vector<Workspace> &workspaces, std::string_view uri);

// Returns the result of resources/read for a file of at most 1 MiB. UTF-8 without NUL is returned
// as text, all other content as Base64. On failure, sets *failed and returns a JSON-RPC error
// object.
std::string read_resource(const std::vector<Workspace> &workspaces, std::string_view uri,
                          bool *failed);

// Starts watching the file, which need not exist, and returns the result of resources/subscribe. On
// failure, sets *failed and returns a JSON-RPC error object.
std::string subscribe(const std::vector<Workspace> &workspaces, const std::string &uri,
                      Watcher *watcher, bool *failed);

}  // namespace builtin_files
