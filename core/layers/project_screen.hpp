// Filters the layer of a project file. Internal to core/layers.
#pragma once

#include <string>
#include <vector>

#include "profile/diagnostics.hpp"
#include "profile/sections.hpp"
#include "profile/tree.hpp"

namespace bulkhead::profiles {

// A server without approval.
struct Unapproved {
  Member entry;
};

// Keeps only mcpServers of a canonical project layer, and in it only approved servers whose names
// do not occur in lower layers. `below` is the merged lower layers. Servers without approval are
// moved to *unapproved; a note lists all other dropped members.
Node screen_project(Node &&root, const ProfileLayer &layer, const Node &below,
                    std::vector<Unapproved> *unapproved, Diagnostics &diagnostics);

// Adds servers without approval to the profile. They are disabled, show the command that approves
// them, and have no definition.
void add_unapproved(const std::vector<Unapproved> &unapproved, Context &context);

}  // namespace bulkhead::profiles
