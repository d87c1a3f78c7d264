// [editable]: which sections of a profile others may add to. Internal to core/profile.
#pragma once

#include <string>
#include <vector>

#include "profile/diagnostics.hpp"
#include "profile/tree.hpp"

namespace bulkhead::profiles {

// A section that may not be edited, as the paths of the keys that it means here.
struct LockedSection {
  std::vector<std::vector<std::string>> paths;  // none: it means nothing here
  std::string name;
  Place place;
};

// What of a canonical layer's [editable] is false; mistakes in it are reported.
std::vector<LockedSection> read_editable(const Node &layer, Diagnostics &diagnostics);

}  // namespace bulkhead::profiles
