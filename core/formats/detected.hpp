// Reads detected layers. They contain servers from the settings of other programs. Only the builtin
// layer and the corporation's layer are lower. Internal to the profile libraries.
#pragma once

#include <string>
#include <vector>

#include "profile/diagnostics.hpp"
#include "profile/tree.hpp"

namespace bulkhead::profiles {

// Reads the servers in the layer's file and ignores everything else. If the file cannot be parsed,
// adds a note and returns false.
bool read_detected(const ProfileLayer &layer, std::uint16_t index, Node *out,
                   Diagnostics &diagnostics);

// Drops entries that refer to this gateway (see is_this_gateway()), and servers that have the same
// name as a tools plugin in `below`, the merged lower layers. Adds a note for each of them.
void screen_detected(Node &tree, const Node &below, const std::vector<std::string> &listens,
                     Diagnostics &diagnostics);

// Returns true if the entry connects a client to this gateway (see own_address.hpp).
bool is_this_gateway(const Node &server, const std::vector<std::string> &listens);

// Appends the listen addresses of the transports in a canonical layer.
void add_listens(const Node &tree, std::vector<std::string> *out);

}  // namespace bulkhead::profiles
