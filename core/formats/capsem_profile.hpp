// Profiles in the format "capsem.profile.v2": strict validation, and translation of the sections
// that have a meaning here. Internal to the profile libraries.
#pragma once

#include "profile/diagnostics.hpp"
#include "profile/tree.hpp"

namespace bulkhead::profiles {

inline constexpr std::string_view kV2Schema = "capsem.profile.v2";

// Returns true for a parsed layer with this "schema".
bool is_v2(const Node &root);

// Keeps id, revision, mcpServers (with their "capsem" tables), security and editable; a note lists
// the dropped sections. `corp` allows directives.
Node from_v2(Node &&root, bool corp, Diagnostics &diagnostics);

// Merges a profile over the profile that it extends. Tables are merged by key. Lists of strings
// become a union in the order of first appearance (except the arguments of a command). Other values
// replace the old ones.
void merge_extended(Node &base, Node &&over);

// Translates the "capsem" table of each server of a canonical layer: allowed_tools, enabled, rules.
// If `v2` is set, a list of allowed tools also becomes a rule, and the default verdict is "ask".
// `rules` is false if the layer may only have servers; a note then lists the dropped rules.
void translate_capsem_keys(Node &layer, bool v2, bool rules, Diagnostics &diagnostics);

}  // namespace bulkhead::profiles
