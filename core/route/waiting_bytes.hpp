// Counts and limits the bytes of messages that wait for a check for duplicate members, for a policy
// decision, or for the commit of an intent record.
//
// Owner: the Router. Used on the reactor thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "profile/profile.hpp"

namespace bulkhead {

class WaitingBytes {
 public:
  explicit WaitingBytes(const Limits &limits) : limits_(limits) {}

  // Counts the bytes and returns true. If the total would exceed limits.policy_waiting_bytes,
  // returns false and counts nothing.
  bool take(std::size_t bytes) noexcept {
    if (bytes_ + bytes > limits_.policy_waiting_bytes) return false;
    bytes_ += bytes;
    return true;
  }
  void give_back(std::size_t bytes) noexcept { bytes_ -= bytes; }

 private:
  const Limits &limits_;
  std::uint64_t bytes_ = 0;
};

}  // namespace bulkhead
