// Enforces deadlines for everything that is requested from a compartment. A process that misses a
// deadline is killed.
#include <signal.h>

#include <utility>

#include "supervisor/supervisor_child.hpp"

namespace bulkhead::program {
namespace {

// A process that has not responded to max_unanswered pings is considered unresponsive. Pings are
// counted, because if time were measured, a clock jump could cause a process to be killed.
constexpr std::uint64_t ping_ms = 5'000;
constexpr std::uint32_t max_unanswered = 6;

}  // namespace

// Requests a stop, and kills the process if it does not exit within its grace period.
void Supervisor::end(Child &child, bool replaced) {
  if (!child.running() || std::exchange(child.ending, true)) return;
  link::Frame frame;
  frame.kind = control::stop;
  frame.code = replaced ? 1 : 0;
  child.control->send(frame);
  set_deadline(child);
}

// Sets the deadline for what the process must do next: finish starting, acknowledge new
// definitions, or exit. Replaces the previous deadline.
void Supervisor::set_deadline(Child &child) {
  reactor_->timer_cancel(std::exchange(child.kill_timer, 0));
  if (!child.running()) return;
  const Profile &profile = child.slice.profile;
  std::uint64_t wait_ms = 0;
  if (!child.control->open()) {
    wait_ms = stop_margin_ms;  // the process is exiting or has violated the protocol
  } else if (child.ending) {
    wait_ms = 2 * child.grace_ms + stop_margin_ms;
    // Unless the gateway is stopping, allow time for in-flight calls to finish.
    if (!stopping_) wait_ms += profile.limits.drain_ms;
  } else if (!child.ready) {
    const std::size_t plugins = child.slice.plugins.size() + profile.transports.size() +
                                profile.policies.size() + profile.telemetry.size();
    const bool swapped = child.replaces != nullptr && mode_ == ApplyMode::swap;
    wait_ms = (swapped ? max_swap_ms : max_start_ms) + plugins * profile.limits.plugin_init_ms;
  } else if (child.settings_asked != 0) {
    wait_ms = max_settings_ms;
  } else {
    return;
  }
  child.kill_timer =
      reactor_->timer_start(this, wait_ms, bh::callback(&child, [](Child &it) {
                              it.kill_timer = 0;
                              if (!it.running()) return;
                              it.supervisor->log(LogLevel::warn, it.slice.name,
                                                 "it is unresponsive; killing the process");
                              if (it.replaces != nullptr && it.failure.empty())
                                it.failure = "it was not ready in time";
                              ::kill(it.pid, SIGKILL);
                            }));
}

void Supervisor::ping_all() {
  for (const auto &child : children_) {
    if (!child->running() || !child->ready || child->ending || stopping_) continue;
    if (child->unanswered >= max_unanswered) {
      log(LogLevel::error, child->slice.name, "it is unresponsive; killing the process");
      ::kill(child->pid, SIGKILL);
      continue;
    }
    ++child->unanswered;
    link::Frame frame;
    frame.kind = control::ping;
    child->control->send(frame);
  }
  reactor_->timer_start(this, ping_ms, bh::callback<&Supervisor::ping_all>(this));
}

}  // namespace bulkhead::program
