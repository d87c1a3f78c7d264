// Kills orphaned descendants of this process. Orphans become children of this process only if it is
// a child subreaper (PR_SET_CHILD_SUBREAPER). Internal to core/sandbox.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <functional>

namespace bulkhead {

// Kills and reaps those children of this process for which `chosen` returns true. Their own
// children then become children of this process, so this is repeated until none remain, for at most
// `orphan_rounds` rounds. In each round, waits up to orphan_wait_ms for each child and skips a
// child that does not exit in that time. Returns the number of children that exited. Blocks the
// caller.
inline constexpr int orphan_rounds = 64;
inline constexpr int orphan_wait_ms = 100;
std::size_t kill_children(const std::function<bool(pid_t)> &chosen);

}  // namespace bulkhead
