// Limits the rate at which a compartment can request signatures, so that a compromised telemetry
// plugin cannot overload the supervisor or the disk.
//
// A plugin requests a signature after `checkpoint_rows` records, and after a minute if any records
// are unsigned. If a request is denied, the next signature also covers the records of the denied
// request. Used on one thread.
#pragma once

#include <algorithm>
#include <cstdint>

namespace bulkhead::program {

class SignBudget {
 public:
  static constexpr std::uint64_t burst = 200, per_second = 50;

  explicit SignBudget(std::uint64_t now_ns = 0) : earned_at_ns_(now_ns) {}

  // Takes one signature from the budget. Returns false if none is left. `now_ns` is the current
  // time on the monotonic clock.
  bool consume(std::uint64_t now_ns) noexcept {
    const std::uint64_t earned = (now_ns - earned_at_ns_) / interval_ns;
    left_ = std::min(burst, left_ + earned);
    earned_at_ns_ += earned * interval_ns;
    if (left_ == 0) return false;
    --left_;
    return true;
  }

 private:
  static constexpr std::uint64_t interval_ns = 1'000'000'000 / per_second;
  std::uint64_t left_ = burst, earned_at_ns_;
};

}  // namespace bulkhead::program
