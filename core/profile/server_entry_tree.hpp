// Converts a ServerEntry to a tree. Internal to the profile libraries.
#pragma once

#include "profile/server_entry.hpp"
#include "profile/tree.hpp"

namespace bulkhead::profiles {

// Converts the definition to a table. Validates the entry, because it may come from a compromised
// process: returns false if it is not a tree, is deeper than kProfileDepth, or has more than
// max_values values.
bool to_tree(const ServerEntry &entry, Node *out);

}  // namespace bulkhead::profiles
