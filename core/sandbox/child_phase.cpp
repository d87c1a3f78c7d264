// Reports and awaits the progress of a start.
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>

#include "sandbox/child.hpp"

namespace bulkhead {

void reach(ChildPlan *plan, SpawnPhase phase) noexcept {
  plan->phase.store(static_cast<std::uint32_t>(phase), std::memory_order_release);
  // Once the phase is `over`, the waiting thread may have freed the plan. Waking an unused address
  // is harmless.
  ::syscall(SYS_futex, &plan->phase, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

void wait_for(ChildPlan &plan, SpawnPhase phase) noexcept {
  for (;;) {
    const std::uint32_t now = plan.phase.load(std::memory_order_acquire);
    if (now >= static_cast<std::uint32_t>(phase)) return;
    ::syscall(SYS_futex, &plan.phase, FUTEX_WAIT_PRIVATE, now, nullptr, nullptr, 0);
  }
}

}  // namespace bulkhead
