// Inheritance of profiles: extends_profile_id of the format "capsem.profile.v2".
#pragma once

#include <expected>
#include <functional>
#include <string>
#include <vector>

#include "profile/layer.hpp"

namespace bulkhead {

inline constexpr std::size_t kProfileChain = 8;  // length of a chain of profiles

// Finds the file of a profile by its id; BH_E_NOT_FOUND: no such profile.
using FindProfile = std::function<Result<ProfileLayer>(const std::string &id)>;

// The layer after its ancestors, the first ancestor first, as load_profile() expects them: one
// layer if it extends nothing. An error: an ancestor is missing or has another id, the chain is a
// cycle, or it has more than kProfileChain profiles.
//
// A layer that cannot be parsed is returned alone; load_profile() reports its errors.
std::expected<std::vector<ProfileLayer>, ProfileError> with_ancestors(ProfileLayer layer,
                                                                      const FindProfile &find);

}  // namespace bulkhead
