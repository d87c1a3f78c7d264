// Bounds how often one compartment has statements signed: a keeper of records that was taken over
// must keep neither the supervisor nor its disk busy. An honest one needs a signature for
// `checkpoint_rows` records; what it does not get now, the next one covers.
//
// Thread: one.
#pragma once

#include <algorithm>
#include <cstdint>

namespace bulkhead::program {

class SignBudget {
 public:
  static constexpr std::uint64_t burst = 200, per_second = 50;

  explicit SignBudget(std::uint64_t now_ns = 0) : earned_at_ns_(now_ns) {}

  // May one be made now? now_ns: of a clock that does not go back.
  bool take(std::uint64_t now_ns) noexcept {
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
