// Profiles in the format "capsem.profile.v2": validates them strictly, and translates the sections
// that this program supports. Internal to the profile libraries.
#pragma once

#include "profile/diagnostics.hpp"
#include "profile/tree.hpp"

namespace bulkhead::profiles {

inline constexpr std::string_view kV2Schema = "capsem.profile.v2";

// Returns true if the parsed layer has this "schema" value.
bool is_v2(const Node &root);

// Keeps id, revision, mcpServers (with their "capsem" tables), security and editable. Dropped
// sections are listed in a note. `corp` allows directives.
Node from_v2(Node &&root, bool corp, Diagnostics &diagnostics);

// Merges a profile over the profile that it extends. Tables are merged by key. Lists of strings,
// except command arguments, become a union in order of first appearance. All other values replace
// the previous values.
void merge_extended(Node &base, Node &&over);

// Translates the "capsem" table of each server in a canonical layer: allowed_tools, enabled, rules.
// If `v2` is set, a list of allowed tools also becomes a rule, and the default verdict is "ask". If
// `rules` is false, rules are dropped with a note because the layer may contain only servers.
void translate_capsem_keys(Node &layer, bool v2, bool rules, Diagnostics &diagnostics);

}  // namespace bulkhead::profiles
