// Profiles of the format "capsem.profile.v2": strict validation, and translation of the sections
// that have a meaning here. Internal to the rooms of profiles.
#pragma once

#include "profile/diagnostics.hpp"
#include "profile/tree.hpp"

namespace bulkhead::profiles {

inline constexpr std::string_view kV2Schema = "capsem.profile.v2";

// True for a parsed layer with this "schema".
bool is_v2(const Node &root);

// Keeps id, revision, mcpServers (with their "capsem" tables), security and editable; a note lists
// dropped sections. `corp`: directives are allowed.
Node from_v2(Node &&root, bool corp, Diagnostics &diagnostics);

// Merges a profile over the one that it extends: tables per key, lists of strings as a union in the
// order of first appearance (except the arguments of a command); other values replace.
void merge_extended(Node &base, Node &&over);

// Translates the "capsem" table of each server of a canonical layer: allowed_tools, enabled, rules.
// `v2`: a list of allowed tools is a rule, too, and the default verdict is "ask". `rules`: false if
// the layer may have servers only; a note lists dropped rules.
void translate_capsem_keys(Node &layer, bool v2, bool rules, Diagnostics &diagnostics);

}  // namespace bulkhead::profiles
