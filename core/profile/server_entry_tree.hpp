// Conversion of a ServerEntry. Internal to the rooms of profiles.
#pragma once

#include "profile/server_entry.hpp"
#include "profile/tree.hpp"

namespace bulkhead::profiles {

// The definition as a table. The entry may come from a compromised process: false if it is not a
// tree, is deeper than kProfileDepth, or has more than max_values.
bool to_tree(const ServerEntry &entry, Node *out);

}  // namespace bulkhead::profiles
