// Profile inheritance: extends_profile_id in the format "capsem.profile.v2".
#pragma once

#include <expected>
#include <functional>
#include <string>
#include <vector>

#include "profile/layer.hpp"

namespace bulkhead {

inline constexpr std::size_t kProfileChain = 8;  // maximum number of profiles in a chain

// Finds a profile's file by the profile's id. Returns BH_E_NOT_FOUND if there is none.
using FindProfile = std::function<Result<ProfileLayer>(const std::string &id)>;

// Returns the layer preceded by its ancestors, most distant first, as load_profile() expects. If
// the layer extends no profile, only the layer itself is returned. Returns an error if an ancestor
// is missing or has a different id, or if the chain has a cycle or more than kProfileChain
// profiles.
//
// A layer that cannot be parsed is returned alone; load_profile() reports its errors.
std::expected<std::vector<ProfileLayer>, ProfileError> with_ancestors(ProfileLayer layer,
                                                                      const FindProfile &find);

}  // namespace bulkhead
