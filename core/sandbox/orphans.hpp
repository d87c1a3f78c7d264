// Children of this process that others have left to it (PR_SET_CHILD_SUBREAPER). Internal to
// core/sandbox.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <functional>

namespace bulkhead {

// Kills and reaps the children of this process that `chosen` says, and again what their ends bring,
// until there is none or `orphan_rounds` have passed, each of which waits orphan_wait_ms at most
// for one child; what does not end in that time is left. Returns how many have ended. Blocks; for a
// case that is rare.
inline constexpr int orphan_rounds = 64;
inline constexpr int orphan_wait_ms = 100;
std::size_t kill_children(const std::function<bool(pid_t)> &chosen);

}  // namespace bulkhead
