// Computes a project server's serialized form and working directory. The display of a server and
// the verification of its approval use the same functions. Internal to core/layers.
#pragma once

#include <string>

#include "profile/tree.hpp"

namespace bulkhead::profiles {

// Returns the ProjectEntry::serialisation of a member of mcpServers.
std::string project_serialisation(const Member &entry, const std::string &file);

// Returns the server's working directory. A relative `cwd` is relative to the file's folder. `cwd`
// is a string node, or null if the definition has no cwd.
std::string project_cwd(const Node *cwd, const std::string &file);

}  // namespace bulkhead::profiles
