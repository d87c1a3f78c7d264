// Detected layers: servers from the settings of other programs, which are the lowest layers of a
// profile. Internal to the profile libraries.
#pragma once

#include <string>
#include <vector>

#include "profile/diagnostics.hpp"
#include "profile/tree.hpp"

namespace bulkhead::profiles {

// Reads only the servers of such a file. If it is not readable, adds a note and returns false.
bool read_detected(const ProfileLayer &layer, std::uint16_t index, Node *out,
                   Diagnostics &diagnostics);

// Drops servers that start this gateway or connect to one of its own addresses (`listens`), and
// servers with the name of a tools plugin. Adds a note for each.
void screen_detected(Node &tree, const Node &below, const std::vector<std::string> &listens,
                     Diagnostics &diagnostics);

// True for an entry of a client that connects it to this gateway: a command `bulkhead`, or a
// loopback URL with the port of one of `listens`.
bool is_this_gateway(const Node &server, const std::vector<std::string> &listens);

// Appends the listen addresses of a canonical layer's transports.
void add_listens(const Node &tree, std::vector<std::string> *out);

}  // namespace bulkhead::profiles
