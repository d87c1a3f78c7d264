// Computes a project server's serialized form and working directory. The same functions are used to
// display a server and to verify its approval. Internal to core/layers.
#pragma once

#include <string>

#include "profile/tree.hpp"

namespace bulkhead::profiles {

// Returns ProjectEntry::serialisation for a member of mcpServers.
std::string project_serialisation(const Member &entry, const std::string &file);

// Returns the server's working directory. A relative `cwd` is resolved against the file's folder,
// and an empty one means that folder. `cwd` is a string node, or null if the definition has no cwd.
std::string project_cwd(const Node *cwd, const std::string &file);

}  // namespace bulkhead::profiles
