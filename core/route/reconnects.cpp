#include "route/reconnects.hpp"

#include <algorithm>

#include "base/jitter.hpp"

namespace bulkhead {

void Reconnects::ready() {
  ready_since_ns_ = host_.reactor().now_ns();
  cancel();
}

void Reconnects::lost() {
  if (host_.reactor().now_ns() - ready_since_ns_ >= steady_ns) failures_ = 0;
}

void Reconnects::schedule(std::uint32_t retry_after_ms) {
  const Limits &limits = host_.limits();
  const std::uint32_t doublings = std::min<std::uint32_t>(failures_ > 0 ? failures_ - 1 : 0, 16);
  const std::uint64_t backoff = std::min(limits.retry_min_ms << doublings, limits.retry_max_ms);
  const std::uint64_t delay = std::max<std::uint64_t>(
      jitter(backoff), std::min<std::uint64_t>(retry_after_ms, limits.retry_max_ms));
  cancel();
  timer_ = host_.reactor().timer_start(owner_, delay, bh::callback(this, [](Reconnects &self) {
                                         self.timer_ = 0;
                                         self.due_.fn(self.due_.arg);
                                       }));
}

void Reconnects::cancel() {
  host_.reactor().timer_cancel(timer_);
  timer_ = 0;
}

}  // namespace bulkhead
