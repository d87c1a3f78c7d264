// [editable]: the sections of a profile that others may change. Internal to the rooms of profiles.
#pragma once

#include <string>
#include <vector>

#include "profile/diagnostics.hpp"
#include "profile/tree.hpp"

namespace bulkhead::profiles {

// A section that may not be edited, and the paths of its keys.
struct LockedSection {
  std::vector<std::vector<std::string>> paths;  // none: no meaning here
  std::string name;
  Place place;
};

// The sections that [editable] of a canonical layer sets to false; errors in it are reported.
std::vector<LockedSection> read_editable(const Node &layer, Diagnostics &diagnostics);

}  // namespace bulkhead::profiles
