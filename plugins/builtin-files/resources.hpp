// MCP resources for files in the workspaces: file:// URIs with absolute paths.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "builtin-files/tools.hpp"
#include "builtin-files/watcher.hpp"

namespace builtin_files {

// Returns the JSON array for resources/templates/list: one template per workspace.
std::string resource_templates(const std::vector<Workspace> &workspaces);

// Returns the file:// URI of a file, with the path percent-encoded.
std::string file_uri(const Workspace &workspace, std::string_view path);

// The file that a URI refers to. `workspace` is null if the file is not in a workspace.
struct Located {
  const Workspace *workspace = nullptr;
  std::string path;  // relative to the workspace
};
Located locate(const std::vector<Workspace> &workspaces, std::string_view uri);

// Returns the result of resources/read: a whole file of at most 1 MiB. UTF-8 without NUL is
// returned as text, other content as base64. *failed is set if the result is a JSON-RPC error
// object.
std::string read_resource(const std::vector<Workspace> &workspaces, std::string_view uri,
                          bool *failed);

// Returns the result of resources/subscribe and starts watching the file, which need not exist.
// *failed is set as in read_resource().
std::string subscribe(const std::vector<Workspace> &workspaces, const std::string &uri,
                      Watcher *watcher, bool *failed);

}  // namespace builtin_files
