// Settings files of other MCP clients. Internal to core/formats.
#pragma once

#include <string>

#include "profile/layer.hpp"
#include "profile/tree.hpp"

namespace bulkhead::profiles {

// Reads and parses a client's file. The file may be larger than a profile. If a name occurs twice,
// the last value applies, as in the clients themselves. On failure, *error is set to the reason.
bool read_client_file(const std::string &path, Node *out, std::string *error);

// Returns the table at this sequence of keys, or null.
const Node *section_of(const Node &root, const std::vector<std::string> &section);

}  // namespace bulkhead::profiles
