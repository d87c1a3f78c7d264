// The two clocks of this project. Header only; C++20; includes no other SDK header.
//
// Plugins that use the host's event loop should call Host::now_ns() for timers instead. It returns
// the time at which the current event loop iteration started, without a system call.
//
// Thread-safe.
#pragma once

#include <time.h>

#include <cstdint>

namespace bh {

inline constexpr std::uint64_t ns_per_ms = 1'000'000;

inline std::uint64_t clock_ns(clockid_t clock) noexcept {
  timespec t{};
  ::clock_gettime(clock, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000u +
         static_cast<std::uint64_t>(t.tv_nsec);
}

// Returns the time since an unspecified starting point. It never decreases. Use it for durations
// and deadlines.
inline std::uint64_t monotonic_ns() noexcept {
  return clock_ns(CLOCK_MONOTONIC);
}
inline std::uint64_t monotonic_ms() noexcept {
  return monotonic_ns() / ns_per_ms;
}

// Returns the time since 1970-01-01 UTC. It may jump when the system clock is adjusted. Use it for
// records and display.
inline std::uint64_t unix_ns() noexcept {
  return clock_ns(CLOCK_REALTIME);
}
inline std::uint64_t unix_ms() noexcept {
  return unix_ns() / ns_per_ms;
}
inline std::uint64_t unix_s() noexcept {
  return unix_ns() / 1'000'000'000u;
}

}  // namespace bh
