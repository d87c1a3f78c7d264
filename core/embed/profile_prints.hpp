// Computes fingerprints of the credentials that a profile passes to its servers. With the
// fingerprints, credentials can be masked without being stored.
#pragma once

#include <string>

#include "plugin/secret_prints.hpp"
#include "profile/profile.hpp"

namespace bulkhead {

// Returns the fingerprints of the headers, variables, arguments and URL parts whose names or
// formats suggest that they are credentials. `key` is 32 bytes long.
SecretPrints prints_of(const Profile &profile, std::string key);

}  // namespace bulkhead
