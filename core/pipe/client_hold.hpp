// Determines when to pause reading from the client: while the lane is full, and while usage is too
// high. Usage is too high from the time it reaches a limit until it falls below half of that limit.
// Owned by Route.
#pragma once

#include <cstddef>
#include <utility>

#include "pipe/backlog.hpp"
#include "pipe/route_limits.hpp"

namespace bulkhead::pipe {

class ClientHold {
 public:
  explicit ClientHold(const RouteLimits &limits) : limits_(limits) {}

  void set_lane_full(bool full) noexcept { lane_full_ = full; }
  // Counts a response that the route itself created and that the client has not read yet. Returns
  // true for the first one after own_answers_taken().
  bool add_own_answer(std::size_t bytes) noexcept {
    return std::exchange(own_bytes_, own_bytes_ + bytes) == 0;
  }
  void own_answers_taken() noexcept { own_bytes_ = 0; }

  bool held() const noexcept { return held_; }
  // Returns true if held() has changed.
  bool update(const Backlog &backlog) noexcept {
    bool hold = lane_full_;
    hold |= pending_.reached(backlog.pending(), limits_.max_pending);
    hold |= pending_bytes_.reached(backlog.pending_bytes(), limits_.max_pending_bytes / 2);
    hold |= waiting_.reached(backlog.waiting_bytes(), limits_.max_waiting_bytes / 2);
    hold |= own_.reached(own_bytes_, limits_.max_own_bytes);
    return std::exchange(held_, hold) != hold;
  }

 private:
  // Becomes true when usage reaches `bound`, and false when it falls below half of `bound`.
  class Mark {
   public:
    bool reached(std::size_t n, std::size_t bound) noexcept {
      full_ = n >= (full_ ? (bound + 1) / 2 : bound);
      return full_;
    }

   private:
    bool full_ = false;
  };

  const RouteLimits &limits_;
  std::size_t own_bytes_ = 0;
  bool lane_full_ = false, held_ = false;
  Mark pending_, pending_bytes_, waiting_, own_;
};

}  // namespace bulkhead::pipe
