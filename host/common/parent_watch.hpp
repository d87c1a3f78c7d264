// Detects when the parent process exits.
//
// The pidfd becomes readable as soon as the parent exits, even if another process keeps the
// parent's pipes open. PR_SET_PDEATHSIG is not suitable, because its signal is sent when the
// *thread* that forked exits.
#pragma once

#include <sys/types.h>

#include "base/owned_fd.hpp"
#include "base/result.hpp"

namespace bulkhead::program {

// Returns a descriptor that becomes readable when the parent exits. The descriptor is empty if
// `parent` is not the parent of this process, for example because it has already exited. Returns an
// error if the system call fails.
Result<OwnedFd> watch_parent(pid_t parent);

}  // namespace bulkhead::program
