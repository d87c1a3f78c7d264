// What of a project file's layer is used. Internal to core/profile.
#pragma once

#include <string>
#include <vector>

#include "profile/diagnostics.hpp"
#include "profile/sections.hpp"
#include "profile/tree.hpp"

namespace bulkhead::profiles {

// A server that stays out because nobody has approved it.
struct Unapproved {
  Member entry;
};

// Of a canonical project layer: only mcpServers, of these only the approved ones, and of these only
// those whose name no layer below has. `below`: the merged layers under it. What is left out
// because it is not approved goes to *unapproved, everything else is noted.
Node screen_project(Node &&root, const ProfileLayer &layer, const Node &below,
                    std::vector<Unapproved> *unapproved, Diagnostics &diagnostics);

// Puts the servers that are not approved into the profile, disabled, with what to run, and without
// anything of their definition.
void add_unapproved(const std::vector<Unapproved> &unapproved, Context &context);

}  // namespace bulkhead::profiles
