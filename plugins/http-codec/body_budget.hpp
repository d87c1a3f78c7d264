// The memory that the unfinished requests of all connections may take together.
#pragma once

#include <algorithm>
#include <cstdint>

namespace http_codec {

// Thread: the reactor's.
class BodyBudget {
 public:
  // What one request has up to here does not count: small ones find room however much the large
  // ones have, and the number of connections bounds them.
  static constexpr std::uint64_t uncounted_bytes = 64u << 10;

  explicit BodyBudget(std::uint64_t bound = UINT64_MAX) noexcept : bound_(bound) {}

  // One request's memory goes from `before` to `after` bytes. False: that would be too much in all,
  // and nothing has changed.
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
