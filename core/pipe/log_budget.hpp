// Limits repeated log lines to a burst, and then to one line per interval.
#pragma once

#include <algorithm>
#include <cstdint>

namespace bulkhead::pipe {

class LogBudget {
 public:
  static constexpr std::uint32_t burst = 10;
  static constexpr std::uint64_t interval_ns = 2'000'000'000;

  // Returns true if a line may be written. In that case, *left_out is set to the number of lines
  // that were omitted since the last line was written.
  bool take(std::uint64_t now_ns, std::uint32_t *left_out) noexcept {
    const std::uint64_t earned = (now_ns - earned_at_ns_) / interval_ns;
    if (earned > 0) {
      lines_ = static_cast<std::uint32_t>(std::min<std::uint64_t>(burst, lines_ + earned));
      earned_at_ns_ += earned * interval_ns;
    }
    if (lines_ == 0) {
      ++left_out_;
      return false;
    }
    --lines_;
    *left_out = left_out_;
    left_out_ = 0;
    return true;
  }

 private:
  std::uint32_t lines_ = burst, left_out_ = 0;
  std::uint64_t earned_at_ns_ = 0;
};

}  // namespace bulkhead::pipe
