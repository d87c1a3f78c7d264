// A project server's serialization and working directory, used both to display a server and to
// verify its approval. Internal to core/layers.
#pragma once

#include <string>

#include "profile/tree.hpp"

namespace bulkhead::profiles {

// Returns ProjectEntry::serialisation for one member of mcpServers.
std::string project_serialisation(const Member &entry, const std::string &file);

// Returns a server's working directory: its cwd, relative to the file's folder. `cwd` is the string
// node, or null if the definition has no cwd.
std::string project_cwd(const Node *cwd, const std::string &file);

}  // namespace bulkhead::profiles
