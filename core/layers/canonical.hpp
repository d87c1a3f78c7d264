// Converts layers to their canonical form and merges them. Internal to core/layers.
#pragma once

#include <string_view>

#include "profile/diagnostics.hpp"
#include "profile/tree.hpp"

namespace bulkhead::profiles {

// Renames aliases of the server section ("servers", "mcp.servers", mcp = { servers } ...) to
// "mcpServers" and [policy] to [policies.policy], and drops "inputs" and "$schema". In a JSON file
// with servers that is neither a project file nor a lenient layer, keys of other programs are
// dropped with one note.
Node canonical_layer(Node &&root, const ProfileLayer &layer, Diagnostics &diagnostics);

// Merges a canonical layer over the layers below it, following the rules of ProfileLayer.
void merge_layer(Node &base, Node &&over);

}  // namespace bulkhead::profiles
