// Ends a program when its parent process ends.
//
// A pidfd reports the end at once, even if another process keeps the parent's pipes open.
// PR_SET_PDEATHSIG is not suitable: it is sent when the *thread* that forked ends.
#pragma once

#include <sys/types.h>

#include "base/owned_fd.hpp"
#include "base/result.hpp"

namespace bulkhead::program {

// Returns a descriptor that becomes readable when the parent ends. It is empty if `parent` is not,
// or is no longer, the parent of this process. Returns an error if the kernel call failed.
Result<OwnedFd> watch_parent(pid_t parent);

}  // namespace bulkhead::program
