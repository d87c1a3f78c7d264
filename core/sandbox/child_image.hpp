// The program of child_init.c as a descriptor that can be executed.
#pragma once

#include "base/owned_fd.hpp"
#include "base/result.hpp"

namespace bulkhead {

// A sealed file in memory, close-on-exec. BH_E_IO when the kernel makes none (or none that may be
// executed).
Result<OwnedFd> child_init_image();

}  // namespace bulkhead
