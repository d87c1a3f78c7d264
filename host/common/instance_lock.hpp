// A file that only one process has at a time.
#pragma once

#include <string>

#include "base/owned_fd.hpp"
#include "base/result.hpp"

namespace bulkhead::program {

// Takes the lock and writes our process id into the file, for people. It is the kernel's lock on
// the open file: whatever a dead process left behind does not hold it. Empty: another process has
// it. An error: the file cannot be made, or is no plain file. Held as long as the descriptor.
Result<OwnedFd> take_instance_lock(const std::string &path);

}  // namespace bulkhead::program
