// Reads profiles in the format "capsem.profile.v2": validates them strictly and translates the
// sections that this program supports. Internal to the profile libraries.
#pragma once

#include "profile/diagnostics.hpp"
#include "profile/tree.hpp"

namespace bulkhead::profiles {

inline constexpr std::string_view kV2Schema = "capsem.profile.v2";

// Returns true if the "schema" of the parsed layer is kV2Schema.
bool is_v2(const Node &root);

// Returns the supported sections of a v2 profile: id, revision, detect_servers, mcpServers (with
// their "capsem" tables), security and editable. If `corp` is set, directives are allowed, too. A
// note lists the dropped sections that control the other program and are not empty. Errors are
// reported to `diagnostics`.
Node from_v2(Node &&root, bool corp, Diagnostics &diagnostics);

// Merges a profile over the profile that it extends. Tables are merged key by key. Lists of
// strings, except command arguments, are combined without duplicates, in the order of first
// appearance. All other values replace those of the extended profile.
void merge_extended(Node &base, Node &&over);

// Translates the "capsem" table of each server in a canonical layer: allowed_tools, enabled and
// rules. If `v2` is set, the default verdict is "ask" unless the layer sets it and, if `rules` is
// set as well, a list of allowed tools also becomes a rule. If `rules` is false, the layer may
// define only servers, so rules are dropped with a note.
void translate_capsem_keys(Node &layer, bool v2, bool rules, Diagnostics &diagnostics);

}  // namespace bulkhead::profiles
