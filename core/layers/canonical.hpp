// One layer brought into the shape that all layers merge in. Internal to core/profile.
#pragma once

#include <string_view>

#include "profile/diagnostics.hpp"
#include "profile/tree.hpp"

namespace bulkhead::profiles {

// The other spellings of the server section ("servers", "mcp.servers", mcp = { servers } ...)
// become "mcpServers", [policy] becomes [policies.policy]; "inputs" and "$schema" go. From a JSON
// file with servers that may be another program's (no project file, no lenient layer) go the keys
// that are none of ours, with one note.
Node canonical_layer(Node &&root, const ProfileLayer &layer, Diagnostics &diagnostics);

// Merges a canonical layer over those below it, by the rules of ProfileLayer.
void merge_layer(Node &base, Node &&over);

}  // namespace bulkhead::profiles
