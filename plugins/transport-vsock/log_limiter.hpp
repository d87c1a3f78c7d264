// Limits how often guests can cause log lines. The first line is logged immediately. Later lines
// are logged at most once a minute, together with the number of suppressed lines. Single-threaded.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

namespace transport_vsock {

class LogLimiter {
 public:
  static constexpr std::uint64_t pause_ns = 60'000'000'000;

  // Returns true if the line should be logged. The caller must then append suppressed() to the
  // line. now_ns is the time from a monotonic clock.
  bool due(std::uint64_t now_ns) noexcept {
    if (logged_ && now_ns - logged_ns_ < pause_ns) {
      ++suppressed_;
      return false;
    }
    logged_ = true;
    logged_ns_ = now_ns;
    return true;
  }
  // Returns the text to append to the line and resets the count. If no lines were suppressed, the
  // text is empty.
  std::string suppressed() {
    const std::uint64_t n = std::exchange(suppressed_, 0);
    return n == 0 ? std::string() : " (" + std::to_string(n) + " similar lines suppressed)";
  }

 private:
  bool logged_ = false;
  std::uint64_t logged_ns_ = 0, suppressed_ = 0;
};

}  // namespace transport_vsock
