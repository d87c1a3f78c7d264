// Inheritance of profiles: extends_profile_id in the format "capsem.profile.v2".
#pragma once

#include <expected>
#include <functional>
#include <string>
#include <vector>

#include "profile/layer.hpp"

namespace bulkhead {

inline constexpr std::size_t kProfileChain = 8;  // maximum length of a chain of profiles

// Finds a profile's file by its id. Returns BH_E_NOT_FOUND if there is none.
using FindProfile = std::function<Result<ProfileLayer>(const std::string &id)>;

// Returns the layer preceded by its ancestors, most distant first, as load_profile() expects them.
// If the layer extends no profile, only the layer is returned. Returns an error if an ancestor is
// missing or has a different id, if the chain is a cycle, or if it has more than kProfileChain
// profiles.
//
// A layer that cannot be parsed is returned alone; load_profile() reports its errors.
std::expected<std::vector<ProfileLayer>, ProfileError> with_ancestors(ProfileLayer layer,
                                                                      const FindProfile &find);

}  // namespace bulkhead
