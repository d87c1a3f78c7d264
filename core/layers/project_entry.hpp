// The subject of an approval, shared by its display and its check. Internal to core/layers.
#pragma once

#include <string>

#include "profile/tree.hpp"

namespace bulkhead::profiles {

// ProjectEntry::serialisation of one member of mcpServers.
std::string project_serialisation(const Member &entry, const std::string &file);

// The working directory of a server: its cwd relative to the folder of the file. `cwd`: the string
// node, or null if the definition has none.
std::string project_cwd(const Node *cwd, const std::string &file);

}  // namespace bulkhead::profiles
