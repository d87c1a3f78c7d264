// Detected layers: servers from the settings of other programs, as the lowest layers of a profile.
// Internal to the profile libraries.
#pragma once

#include <string>
#include <vector>

#include "profile/diagnostics.hpp"
#include "profile/tree.hpp"

namespace bulkhead::profiles {

// Reads only the servers in the layer's file. If the file cannot be read, adds a note and returns
// false.
bool read_detected(const ProfileLayer &layer, std::uint16_t index, Node *out,
                   Diagnostics &diagnostics);

// Drops servers that start this gateway or connect to one of its addresses (`listens`), and servers
// with the same name as a tools plugin. Adds a note for each dropped server.
void screen_detected(Node &tree, const Node &below, const std::vector<std::string> &listens,
                     Diagnostics &diagnostics);

// Returns true if the entry connects a client to this gateway: its command is `bulkhead`, or its
// URL is a loopback address with the port of one of `listens`.
bool is_this_gateway(const Node &server, const std::vector<std::string> &listens);

// Appends the listen addresses of a canonical layer's transports.
void add_listens(const Node &tree, std::vector<std::string> *out);

}  // namespace bulkhead::profiles
