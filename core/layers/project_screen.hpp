// Filters a project file's layer. Internal to core/layers.
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

// In a canonical project layer, keeps only approved servers whose names do not occur in lower
// layers; all other sections are dropped. `below` is the merged lower layers. Servers without
// approval are moved to *unapproved. A note lists all other dropped members.
Node screen_project(Node &&root, const ProfileLayer &layer, const Node &below,
                    std::vector<Unapproved> *unapproved, Diagnostics &diagnostics);

// Adds servers without approval to the profile. They are disabled and have no definition, and each
// shows the command that approves it.
void add_unapproved(const std::vector<Unapproved> &unapproved, Context &context);

}  // namespace bulkhead::profiles
