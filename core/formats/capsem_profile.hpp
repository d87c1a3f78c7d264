// Profiles of another format, schema "capsem.profile.v2": checked strictly, and what of them means
// something here in our shape. Internal to core/profile.
#pragma once

#include "profile/diagnostics.hpp"
#include "profile/tree.hpp"

namespace bulkhead::profiles {

inline constexpr std::string_view kV2Schema = "capsem.profile.v2";

// True for a layer as it was read whose "schema" says so.
bool is_v2(const Node &root);

// id, revision, mcpServers (with their "capsem" tables), security and editable remain; that other
// sections are left out is a note. `corp`: directives may be in it.
Node from_v2(Node &&root, bool corp, Diagnostics &diagnostics);

// Merges a profile over the one that it extends: tables per key, lists of strings as a union in the
// order of their first appearance (but for the arguments of a command), other values replace.
void merge_extended(Node &base, Node &&over);

// The "capsem" table of each server of a canonical layer becomes what it is another spelling of:
// allowed_tools, enabled, rules. `v2`: a list of allowed tools is a rule, too, and what no rule
// decides is asked about. `rules`: without, the layer may give servers only, and a note says what
// is left out.
void translate_capsem_keys(Node &layer, bool v2, bool rules, Diagnostics &diagnostics);

}  // namespace bulkhead::profiles
