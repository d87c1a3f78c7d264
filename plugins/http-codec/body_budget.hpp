// Limits the total memory of unfinished requests on all connections.
#pragma once

#include <algorithm>
#include <cstdint>

namespace http_codec {

// Runs on the reactor thread.
class BodyBudget {
 public:
  // This many bytes of each request are not counted, so that large requests cannot block small
  // requests. The connection limit bounds the uncounted memory.
  static constexpr std::uint64_t uncounted_bytes = 64u << 10;

  explicit BodyBudget(std::uint64_t bound = UINT64_MAX) noexcept : bound_(bound) {}

  // Changes the memory of one request from `before` to `after` bytes. If the total would exceed the
  // limit, returns false and changes nothing.
  bool change(std::uint64_t before, std::uint64_t after) noexcept {
    const std::uint64_t others = used_ - counted(before);
    if (after > before && counted(after) > bound_ - others) return false;
    used_ = others + counted(after);
    return true;
  }
  std::uint64_t used() const noexcept { return used_; }

 private:
  static std::uint64_t counted(std::uint64_t bytes) noexcept {
    return bytes - std::min(bytes, uncounted_bytes);
  }

  std::uint64_t bound_;
  std::uint64_t used_ = 0;
};

}  // namespace http_codec
