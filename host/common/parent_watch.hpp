// Ends a program when its parent process exits.
//
// A pidfd reports the exit immediately, even if another process keeps the parent's pipes open.
// PR_SET_PDEATHSIG is not suitable: it is sent when the *thread* that forked exits.
#pragma once

#include <sys/types.h>

#include "base/owned_fd.hpp"
#include "base/result.hpp"

namespace bulkhead::program {

// Returns a descriptor that becomes readable when the parent exits. The descriptor is empty if
// `parent` is not, or is no longer, the parent of this process. Returns an error if the kernel call
// failed.
Result<OwnedFd> watch_parent(pid_t parent);

}  // namespace bulkhead::program
