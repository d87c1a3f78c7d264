// Servers that other programs have in their settings, as the lowest layers of a profile. Internal
// to core/profile.
#pragma once

#include <string>
#include <vector>

#include "profile/diagnostics.hpp"
#include "profile/tree.hpp"

namespace bulkhead::profiles {

// The servers of such a file and nothing else of it. False, with a note: it cannot be read.
bool read_detected(const ProfileLayer &layer, std::uint16_t index, Node *out,
                   Diagnostics &diagnostics);

// Leaves out, with notes, what would start this gateway again or call it by its own address
// (`listens`), and what has the name of a tools plugin.
void screen_detected(Node &tree, const Node &below, const std::vector<std::string> &listens,
                     Diagnostics &diagnostics);

// Appends what the transports of a canonical layer listen on.
void add_listens(const Node &tree, std::vector<std::string> *out);

}  // namespace bulkhead::profiles
