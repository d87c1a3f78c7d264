#include "route/idle_stop.hpp"

#include "route/upstream.hpp"

namespace bulkhead {

void IdleStop::watch() {
  used();
  start_timer();
}

void IdleStop::start_timer() {
  const std::uint64_t ms = lane_.upstream().def().idle_stop_ms;
  if (!lane_.lazy() || ms == 0 || timer_ != 0) return;
  timer_ = host_.reactor().timer_start(&lane_, ms, bh::callback(this, [](IdleStop &self) {
    self.timer_ = 0;
    self.check();
  }));
}

void IdleStop::check() {
  if (lane_.state() != LaneState::ready || !lane_.lazy()) return;
  const bool busy = owner_.busy();
  if (busy) used();
  const std::uint64_t bound = lane_.upstream().def().idle_stop_ms * 1'000'000u;
  if (busy || host_.reactor().now_ns() - last_use_ns_ < bound) return start_timer();
  owner_.stop_idle();
}

void IdleStop::cancel() {
  host_.reactor().timer_cancel(timer_);
  timer_ = 0;
}

}  // namespace bulkhead
