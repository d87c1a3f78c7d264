// Fingerprints of the credentials that a profile gives its servers. They allow masking without
// storing the credentials.
#pragma once

#include <string>

#include "plugin/secret_prints.hpp"
#include "profile/profile.hpp"

namespace bulkhead {

// Fingerprints headers, variables and passwords in URLs, selected by name and shape. `key` is 32
// bytes long.
SecretPrints prints_of(const Profile &profile, std::string key);

}  // namespace bulkhead
