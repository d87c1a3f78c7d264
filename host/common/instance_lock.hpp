// A lock file that only one process can hold at a time.
#pragma once

#include <string>

#include "base/owned_fd.hpp"
#include "base/result.hpp"

namespace bulkhead::program {

// Locks the file until the returned descriptor is closed. Also writes the process ID to the file,
// for information only.
//
// Returns an empty descriptor if another process holds the lock, or an error if the file cannot be
// created or is not a regular file. The lock belongs to the open file, not to its path, so the
// kernel releases it when the process terminates, even though the file remains.
Result<OwnedFd> acquire_instance_lock(const std::string &path);

}  // namespace bulkhead::program
