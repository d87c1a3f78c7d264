// Implements profile inheritance: extends_profile_id in the format "capsem.profile.v2".
#pragma once

#include <expected>
#include <functional>
#include <string>
#include <vector>

#include "profile/layer.hpp"

namespace bulkhead {

inline constexpr std::size_t kProfileChain = 8;  // maximum number of profiles in a chain

// Finds the file of the profile that has this ID. Returns BH_E_NOT_FOUND if there is none.
using FindProfile = std::function<Result<ProfileLayer>(const std::string &id)>;

// Returns the layer and its ancestors, in the order that load_profile() expects: the most distant
// ancestor is first. Returns an error if an ancestor is missing, is not in this format, or has a
// different ID or revision, if the chain contains a cycle, or if it has more than kProfileChain
// profiles.
//
// A layer that extends no profile is returned by itself. So is a layer that cannot be parsed;
// load_profile() reports its errors. The same applies to ancestors: the chain ends there.
std::expected<std::vector<ProfileLayer>, ProfileError> with_ancestors(ProfileLayer layer,
                                                                      const FindProfile &find);

}  // namespace bulkhead
