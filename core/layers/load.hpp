// Loads a profile: converts text layers to a Profile, or reports all errors.
#pragma once

#include <variant>
#include <vector>

#include "profile/layer.hpp"
#include "profile/profile.hpp"

namespace bulkhead {

// Returns the profile, or all errors (at most kProfileErrors). If `holds` is not null, it receives
// the parts of the profile that its layers protect from later changes.
std::variant<Profile, std::vector<ProfileError>> load_profile(
    const std::vector<ProfileLayer> &layers, const ProfileEnvironment &environment,
    std::vector<ProfileHold> *holds = nullptr);

}  // namespace bulkhead
