// Limits log lines that guests can cause: the first is logged at once, further ones at most once a
// minute with the number of suppressed lines. Thread: one.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

namespace transport_vsock {

class LogLimiter {
 public:
  static constexpr std::uint64_t pause_ns = 60'000'000'000;

  // True if the line is to be logged now, with suppressed() appended. now_ns: a monotonic clock.
  bool due(std::uint64_t now_ns) noexcept {
    if (logged_ && now_ns - logged_ns_ < pause_ns) {
      ++suppressed_;
      return false;
    }
    logged_ = true;
    logged_ns_ = now_ns;
    return true;
  }
  // Text for the end of the line, empty if no line was suppressed; resets the count.
  std::string suppressed() {
    const std::uint64_t n = std::exchange(suppressed_, 0);
    return n == 0 ? std::string() : " (" + std::to_string(n) + " similar lines suppressed)";
  }

 private:
  bool logged_ = false;
  std::uint64_t logged_ns_ = 0, suppressed_ = 0;
};

}  // namespace transport_vsock
