// The text and working directory of a project server, for both display and verification of an
// approval. Internal to core/layers.
#pragma once

#include <string>

#include "profile/tree.hpp"

namespace bulkhead::profiles {

// Returns ProjectEntry::serialisation of one member of mcpServers.
std::string project_serialisation(const Member &entry, const std::string &file);

// Returns a server's working directory: its cwd, relative to the folder of the file. `cwd` is the
// string node, or null if the definition has none.
std::string project_cwd(const Node *cwd, const std::string &file);

}  // namespace bulkhead::profiles
