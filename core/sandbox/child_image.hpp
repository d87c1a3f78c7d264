// The program of child_init.c as an executable descriptor.
#pragma once

#include "base/owned_fd.hpp"
#include "base/result.hpp"

namespace bulkhead {

// Creates a sealed, close-on-exec file in memory. BH_E_IO: the kernel cannot create an executable
// one.
Result<OwnedFd> child_init_image();

}  // namespace bulkhead
