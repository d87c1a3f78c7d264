// Profiles that extend others: extends_profile_id of the format "capsem.profile.v2".
#pragma once

#include <expected>
#include <functional>
#include <string>
#include <vector>

#include "profile/layer.hpp"

namespace bulkhead {

inline constexpr std::size_t kProfileChain = 8;  // profiles that extend each other, all together

// Finds the file of a profile by its id; BH_E_NOT_FOUND: nobody has it.
using FindProfile = std::function<Result<ProfileLayer>(const std::string &id)>;

// The layer behind those that it extends, the first ancestor first, as load_profile() takes them:
// one layer if it extends nothing. An error: an ancestor is not there or is not what its name says,
// the chain comes back to itself, or it has more than kProfileChain profiles.
//
// A layer whose text cannot be read comes back alone; load_profile() says what is wrong with it.
std::expected<std::vector<ProfileLayer>, ProfileError> with_ancestors(ProfileLayer layer,
                                                                      const FindProfile &find);

}  // namespace bulkhead
