// The files of the workspaces as MCP resources: file:// and their absolute path.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "builtin-files/tools.hpp"
#include "builtin-files/watcher.hpp"

namespace builtin_files {

// The JSON array for resources/templates/list: one for each workspace.
std::string resource_templates(const std::vector<Workspace> &workspaces);

// file:// with the path percent-encoded.
std::string file_uri(const Workspace &workspace, std::string_view path);

// What a URI names. workspace null: nothing of ours.
struct Located {
  const Workspace *workspace = nullptr;
  std::string path;  // relative to it
};
Located locate(const std::vector<Workspace> &workspaces, std::string_view uri);

// The answer to resources/read: a whole file up to 1 MiB, as text if it is UTF-8 without NUL, else
// as base64. *failed: it is a JSON-RPC error object.
std::string read_resource(const std::vector<Workspace> &workspaces, std::string_view uri,
                          bool *failed);

// The answer to resources/subscribe: that the file, there or not, is watched from now on. *failed:
// as above.
std::string subscribe(const std::vector<Workspace> &workspaces, const std::string &uri,
                      Watcher *watcher, bool *failed);

}  // namespace builtin_files
