// Converts layers to their canonical form and merges them. Internal to core/layers.
#pragma once

#include <string_view>

#include "profile/diagnostics.hpp"
#include "profile/tree.hpp"

namespace bulkhead::profiles {

// Converts a layer to its canonical form. All names of the server section ("servers",
// "mcp.servers", mcp = { servers } ...) become "mcpServers", [policy] becomes [policies.policy],
// and "inputs" and "$schema" are dropped. If a JSON file has servers and is not a project file,
// a lenient layer or the corporation's layer, other programs' keys are dropped with one note.
Node canonical_layer(Node &&root, const ProfileLayer &layer, Diagnostics &diagnostics);

// Merges a canonical layer into `base`, which contains the merged lower layers. The rules for
// merging are described at ProfileLayer.
void merge_layer(Node &base, Node &&over);

}  // namespace bulkhead::profiles
