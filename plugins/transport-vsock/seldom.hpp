// What guests cause must not fill the log: a line at once, then none for a minute however often its
// cause comes again, and the number of those that were left out in the next one. Thread: one.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

namespace transport_vsock {

class Seldom {
 public:
  static constexpr std::uint64_t pause_ns = 60'000'000'000;

  // True: the line is due now; add left_out() to it. now_ns: of a clock that does not go back.
  bool due(std::uint64_t now_ns) noexcept {
    if (said_ && now_ns - said_ns_ < pause_ns) {
      ++left_out_;
      return false;
    }
    said_ = true;
    said_ns_ = now_ns;
    return true;
  }
  // For the end of the line, empty if there were none; counting begins anew.
  std::string left_out() {
    const std::uint64_t n = std::exchange(left_out_, 0);
    return n == 0 ? std::string() : " (" + std::to_string(n) + " more since the last such line)";
  }

 private:
  bool said_ = false;
  std::uint64_t said_ns_ = 0, left_out_ = 0;
};

}  // namespace transport_vsock
