// Nothing that a compartment is asked for is waited for without end: one that was taken over, or
// hangs, is killed.
#include <signal.h>

#include <utility>

#include "supervisor_child.hpp"

namespace bulkhead::program {

// Ends it in good order, or by force after its grace.
void Supervisor::end(Child &child) {
  if (!child.running() || std::exchange(child.ending, true)) return;
  link::Frame frame;
  frame.kind = control::stop;
  child.control->send(frame);
  watch_over(child);
}

// Sets the deadline of what is awaited of the process now; it replaces the one before.
void Supervisor::watch_over(Child &child) {
  reactor_->timer_cancel(std::exchange(child.kill_timer, 0));
  if (!child.running()) return;
  const Profile &profile = child.slice.profile;
  std::uint64_t wait_ms = 0;
  if (!child.control->open()) {
    wait_ms = stop_margin_ms;  // it is ending, or sent what none may send
  } else if (child.ending) {
    wait_ms = 2 * child.grace_ms + stop_margin_ms;
  } else if (!child.ready) {
    const std::size_t plugins = child.slice.plugins.size() + profile.transports.size() +
                                profile.policies.size() + profile.telemetry.size();
    wait_ms = max_start_ms + plugins * profile.limits.plugin_init_ms;
  } else if (child.definitions_asked != 0) {
    wait_ms = max_definitions_ms;
  } else {
    return;
  }
  child.kill_timer = reactor_->timer_start(
      this, wait_ms,
      [](void *arg) {
        auto &it = *static_cast<Child *>(arg);
        it.kill_timer = 0;
        if (!it.running()) return;
        it.supervisor->log(LogLevel::warn, it.slice.name, "it does not react, and is killed");
        ::kill(it.pid, SIGKILL);
      },
      &child);
}

}  // namespace bulkhead::program
