// Loading a profile: layers of text in, one Profile or all errors out.
#pragma once

#include <variant>
#include <vector>

#include "profile/layer.hpp"
#include "profile/profile.hpp"

namespace bulkhead {

// The whole profile, or all of its errors (at most kProfileErrors). `holds`, if given, receives
// the parts of the profile that its layers protect from later changes.
std::variant<Profile, std::vector<ProfileError>> load_profile(
    const std::vector<ProfileLayer> &layers, const ProfileEnvironment &environment,
    std::vector<ProfileHold> *holds = nullptr);

}  // namespace bulkhead
