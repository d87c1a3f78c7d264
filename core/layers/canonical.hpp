// Canonical form of a layer, and the merge of canonical layers. Internal to core/layers.
#pragma once

#include <string_view>

#include "profile/diagnostics.hpp"
#include "profile/tree.hpp"

namespace bulkhead::profiles {

// The other spellings of the server section ("servers", "mcp.servers", mcp = { servers } ...)
// become "mcpServers", [policy] becomes [policies.policy]; "inputs" and "$schema" are dropped. Keys
// of other programs are dropped from a JSON file with servers that another program may share (no
// project file, no lenient layer), with one note.
Node canonical_layer(Node &&root, const ProfileLayer &layer, Diagnostics &diagnostics);

// Merges a canonical layer over those below it, by the rules of ProfileLayer.
void merge_layer(Node &base, Node &&over);

}  // namespace bulkhead::profiles
