// Filter for the layer of a project file. Internal to core/layers.
#pragma once

#include <string>
#include <vector>

#include "profile/diagnostics.hpp"
#include "profile/sections.hpp"
#include "profile/tree.hpp"

namespace bulkhead::profiles {

// A server that is not approved.
struct Unapproved {
  Member entry;
};

// Keeps only mcpServers of a canonical project layer, and of these the approved servers whose name
// no lower layer has. `below`: the merged lower layers. Servers without approval go to *unapproved;
// all other dropped members are noted.
Node screen_project(Node &&root, const ProfileLayer &layer, const Node &below,
                    std::vector<Unapproved> *unapproved, Diagnostics &diagnostics);

// Adds the servers without approval to the profile: disabled, with the command that approves them,
// and without their definition.
void add_unapproved(const std::vector<Unapproved> &unapproved, Context &context);

}  // namespace bulkhead::profiles
