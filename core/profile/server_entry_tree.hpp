// Internal to core/profile.
#pragma once

#include "profile/server_entry.hpp"
#include "profile/tree.hpp"

namespace bulkhead::profiles {

// The definition as a table. It may come from a process that was taken over: false, if it is no
// tree, is deeper than kProfileDepth, or has more than max_values.
bool to_tree(const ServerEntry &entry, Node *out);

}  // namespace bulkhead::profiles
