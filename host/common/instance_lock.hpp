// A lock file that only one process can hold at a time.
#pragma once

#include <string>

#include "base/owned_fd.hpp"
#include "base/result.hpp"

namespace bulkhead::program {

// Locks the file and writes the process id to it for information. The kernel holds the lock on the
// open file, so a file left by a terminated process is not locked. The lock is held until the
// descriptor is closed. Returns an empty descriptor if another process holds the lock, and an error
// if the file cannot be created or is not a regular file.
Result<OwnedFd> acquire_instance_lock(const std::string &path);

}  // namespace bulkhead::program
