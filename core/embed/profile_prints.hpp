// Computes fingerprints of the credentials that a profile gives to its servers. With them, the
// credentials can be masked without being stored.
#pragma once

#include <string>

#include "plugin/secret_prints.hpp"
#include "profile/profile.hpp"

namespace bulkhead {

// Returns the fingerprints of headers, variables, arguments and URL parts whose name or form
// suggests a credential. `key` is 32 bytes long.
SecretPrints prints_of(const Profile &profile, std::string key);

}  // namespace bulkhead
