// The bounds of a profile as plugins see them.
#pragma once

#include "bulkhead/abi/host.h"
#include "profile/profile.hpp"

namespace bulkhead {

bh_limits abi_limits(const Limits &limits);

}  // namespace bulkhead
