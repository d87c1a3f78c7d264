// The program of child_init.c as an executable file descriptor.
#pragma once

#include "base/owned_fd.hpp"
#include "base/result.hpp"

namespace bulkhead {

// Creates a sealed, close-on-exec memory file. Returns BH_E_IO if the kernel cannot create an
// executable memory file.
Result<OwnedFd> child_init_image();

}  // namespace bulkhead
