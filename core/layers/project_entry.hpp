// The subject of an approval, for both display and verification. Internal to core/layers.
#pragma once

#include <string>

#include "profile/tree.hpp"

namespace bulkhead::profiles {

// Returns ProjectEntry::serialisation of one member of mcpServers.
std::string project_serialisation(const Member &entry, const std::string &file);

// Returns the working directory of a server: its cwd relative to the folder of the file. `cwd` is
// the string node, or null if the definition has none.
std::string project_cwd(const Node *cwd, const std::string &file);

}  // namespace bulkhead::profiles
