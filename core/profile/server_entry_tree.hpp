// Converts a ServerEntry to a tree. Internal to the profile libraries.
#pragma once

#include "profile/server_entry.hpp"
#include "profile/tree.hpp"

namespace bulkhead::profiles {

// Converts the definition to a table. Validates the entry, because it may come from a compromised
// process: returns false if the values do not form a tree whose root is a table, if the tree is
// deeper than kProfileDepth or has more than max_values values, or if a number is malformed.
bool to_tree(const ServerEntry &entry, Node *out);

}  // namespace bulkhead::profiles
