// Kills orphaned descendants. They become children of this process if it is a child subreaper
// (PR_SET_CHILD_SUBREAPER). Internal to core/sandbox.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <functional>

namespace bulkhead {

// Kills and reaps the children of this process for which `chosen` returns true. Their own children
// then become children of this process, so this is repeated until none remain or `orphan_rounds`
// rounds have passed. In each round, waits at most orphan_wait_ms for each child and leaves a child
// that does not exit in that time. Returns the number of children that exited. Blocks the caller.
inline constexpr int orphan_rounds = 64;
inline constexpr int orphan_wait_ms = 100;
std::size_t kill_children(const std::function<bool(pid_t)> &chosen);

}  // namespace bulkhead
