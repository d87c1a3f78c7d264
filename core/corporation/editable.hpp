// Reads [editable], which lists the profile sections that other layers may change. Internal to the
// profile libraries.
#pragma once

#include <string>
#include <vector>

#include "profile/diagnostics.hpp"
#include "profile/tree.hpp"

namespace bulkhead::profiles {

// A section that other layers may not change.
struct LockedSection {
  // The paths of the section's keys. Empty if this program does not use the section.
  std::vector<std::vector<std::string>> paths;
  std::string name;
  Place place;
};

// Returns the sections that [editable] in a canonical layer sets to false. Invalid keys in
// [editable] are reported as errors.
std::vector<LockedSection> read_editable(const Node &layer, Diagnostics &diagnostics);

}  // namespace bulkhead::profiles
