// Fingerprints of the credentials that a profile gives its servers, used to mask credentials
// without storing them.
#pragma once

#include <string>

#include "plugin/secret_prints.hpp"
#include "profile/profile.hpp"

namespace bulkhead {

// Fingerprints headers, variables and URL passwords that look like credentials by name or form.
// `key` is 32 bytes long.
SecretPrints prints_of(const Profile &profile, std::string key);

}  // namespace bulkhead
