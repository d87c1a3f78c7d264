// Ends a program together with the one that has started it.
//
// A pidfd tells it at once, whatever else keeps the parent's pipes open. PR_SET_PDEATHSIG would not
// do: it fires when the *thread* that forked ends.
#pragma once

#include <sys/types.h>

#include "base/owned_fd.hpp"
#include "base/result.hpp"

namespace bulkhead::program {

// Becomes readable when the parent has ended. Empty: `parent` is not our parent (any more), so
// there is nobody to work for. An error: the kernel refused.
Result<OwnedFd> watch_parent(pid_t parent);

}  // namespace bulkhead::program
