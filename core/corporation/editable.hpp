// [editable]: the profile sections that others may change. Internal to the profile libraries.
#pragma once

#include <string>
#include <vector>

#include "profile/diagnostics.hpp"
#include "profile/tree.hpp"

namespace bulkhead::profiles {

// A section that must not be edited, and the paths of its keys.
struct LockedSection {
  std::vector<std::vector<std::string>> paths;  // empty: ignored here
  std::string name;
  Place place;
};

// Returns the sections that [editable] in a canonical layer sets to false. Reports errors in
// [editable].
std::vector<LockedSection> read_editable(const Node &layer, Diagnostics &diagnostics);

}  // namespace bulkhead::profiles
