// A lock file that only one process can hold.
#pragma once

#include <string>

#include "base/owned_fd.hpp"
#include "base/result.hpp"

namespace bulkhead::program {

// Locks the file and writes the process id into it, for information. The lock is the kernel's lock
// on the open file, so a file left by an ended process is not locked. Empty: another process holds
// the lock. An error: the file cannot be created or is not a plain file. The lock is held until the
// descriptor is closed.
Result<OwnedFd> acquire_instance_lock(const std::string &path);

}  // namespace bulkhead::program
