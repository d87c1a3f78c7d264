// What an approval is for. Internal to core/profile: one definition for who shows it and who uses
// it.
#pragma once

#include <string>

#include "profile/tree.hpp"

namespace bulkhead::profiles {

// ProjectEntry::serialisation of one member of mcpServers.
std::string project_serialisation(const Member &entry, const std::string &file);

// The working folder of a server of this file: its cwd, from the folder of the file on. `cwd`: the
// string node, or null when the definition has none.
std::string project_cwd(const Node *cwd, const std::string &file);

}  // namespace bulkhead::profiles
