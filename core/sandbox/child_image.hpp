// Provides the child_init.c program as an executable file descriptor.
#pragma once

#include "base/owned_fd.hpp"
#include "base/result.hpp"

namespace bulkhead {

// Creates a sealed memory file that contains the program. The descriptor is close-on-exec. Returns
// BH_E_IO if the kernel cannot create an executable memory file.
Result<OwnedFd> child_init_image();

}  // namespace bulkhead
