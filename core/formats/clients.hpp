// The files in which other MCP clients keep their servers. Internal to core/profile.
#pragma once

#include <string>

#include "profile/layer.hpp"
#include "profile/tree.hpp"

namespace bulkhead::profiles {

// Reads and parses a client's file: larger than a profile, names given twice allowed (the last one
// counts, as for the clients). On failure *error says why.
bool read_client_file(const std::string &path, Node *out, std::string *error);

// The table at these keys, or null.
const Node *section_of(const Node &root, const std::vector<std::string> &section);

}  // namespace bulkhead::profiles
