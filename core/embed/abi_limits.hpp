// Converts the limits of a profile to the ABI structure that plugins receive.
#pragma once

#include "bulkhead/abi/host.h"
#include "profile/profile.hpp"

namespace bulkhead {

bh_limits abi_limits(const Limits &limits);

}  // namespace bulkhead
