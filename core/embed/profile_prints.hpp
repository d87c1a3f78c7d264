// Fingerprints of the credentials that a profile gives its servers, to mask them without storing
// them.
#pragma once

#include <string>

#include "plugin/secret_prints.hpp"
#include "profile/profile.hpp"

namespace bulkhead {

// Covers headers, variables and passwords in URLs, by their names and shapes. key: 32 bytes.
SecretPrints prints_of(const Profile &profile, std::string key);

}  // namespace bulkhead
