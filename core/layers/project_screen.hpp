// Filters the layer of a project file. Internal to core/layers.
#pragma once

#include <string>
#include <vector>

#include "profile/diagnostics.hpp"
#include "profile/sections.hpp"
#include "profile/tree.hpp"

namespace bulkhead::profiles {

struct Unapproved {
  Member entry;
};

// Keeps the approved servers of a canonical project layer, and moves unapproved servers to
// *unapproved. Drops all other sections, servers whose names are already used in `below` (the
// merged lower layers), servers that are this gateway, and servers above the limit kProjectServers.
// Notes report what was dropped, except for the key "schema".
Node screen_project(Node &&root, const ProfileLayer &layer, const Node &below,
                    const std::vector<std::string> &listens, std::vector<Unapproved> *unapproved,
                    Diagnostics &diagnostics);

// Adds unapproved servers to the profile as disabled servers without a definition. The
// disabled_reason contains the command with which the server can be approved. A server with an
// invalid name is skipped with a note.
void add_unapproved(const std::vector<Unapproved> &unapproved, Context &context);

}  // namespace bulkhead::profiles
