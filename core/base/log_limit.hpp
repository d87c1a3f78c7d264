// Limits how often a repeated message is logged.
#pragma once

#include <cstdint>

namespace bulkhead {

class LogLimit {
 public:
  static constexpr std::uint64_t interval_ns = 10'000'000'000;

  // Returns true for the first message, and then at most once per interval. `now_ns` is the time of
  // a monotonic clock.
  bool may_log(std::uint64_t now_ns) noexcept {
    if (now_ns < next_ns_) return false;
    next_ns_ = now_ns + interval_ns;
    return true;
  }

 private:
  std::uint64_t next_ns_ = 0;
};

}  // namespace bulkhead
