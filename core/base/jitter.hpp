// Random jitter for retries, so that clients of one server do not all retry at the same time.
#pragma once

#include <cstdint>
#include <random>

namespace bulkhead {

// Returns a random time from 0.75 * ms to 1.25 * ms. Thread-safe.
inline std::uint64_t jitter(std::uint64_t ms) {
  thread_local std::minstd_rand random{std::random_device{}()};
  return ms - ms / 4 + random() % (ms / 2 + 1);
}

}  // namespace bulkhead
