// The canonical form of a layer, and the merge of canonical layers. Internal to core/layers.
#pragma once

#include <string_view>

#include "profile/diagnostics.hpp"
#include "profile/tree.hpp"

namespace bulkhead::profiles {

// Alternative spellings of the server section ("servers", "mcp.servers", mcp = { servers } ...)
// become "mcpServers", and [policy] becomes [policies.policy]. "inputs" and "$schema" are dropped.
// If a JSON file with servers may belong to another program (it is not a project file or lenient
// layer), keys of other programs are dropped with one note.
Node canonical_layer(Node &&root, const ProfileLayer &layer, Diagnostics &diagnostics);

// Merges a canonical layer over the layers below it, by the rules of ProfileLayer.
void merge_layer(Node &base, Node &&over);

}  // namespace bulkhead::profiles
