// Reads the settings files of other MCP clients. Internal to core/formats.
#pragma once

#include <string>

#include "profile/layer.hpp"
#include "profile/tree.hpp"

namespace bulkhead::profiles {

// Reads and parses a client's file, which may be larger than a profile. If a name occurs twice, the
// last value applies, as in the clients themselves. On failure, sets *error to the reason and
// returns false; if the file does not exist, *error is not changed.
bool read_client_file(const std::string &path, Node *out, std::string *error);

// Returns the table at the end of a path of keys, or null if there is none.
const Node *section_of(const Node &root, const std::vector<std::string> &section);

}  // namespace bulkhead::profiles
