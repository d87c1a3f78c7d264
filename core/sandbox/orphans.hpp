// Handles orphaned descendants that have become children of this process (PR_SET_CHILD_SUBREAPER).
// Internal to core/sandbox.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <functional>

namespace bulkhead {

// Kills and reaps those children of this process for which `chosen` returns true. Repeats this for
// the orphans that these children leave, until none remain or `orphan_rounds` rounds have passed.
// In each round, waits for at most orphan_wait_ms per child; a child that does not exit in that
// time is left. Returns the number of children that exited. Blocks; intended for a rare case.
inline constexpr int orphan_rounds = 64;
inline constexpr int orphan_wait_ms = 100;
std::size_t kill_children(const std::function<bool(pid_t)> &chosen);

}  // namespace bulkhead
