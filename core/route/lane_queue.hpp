// Queues the calls of a lane that wait for a free slot or for the server, up to the limits.
//
// Owned by the lane. Used on the reactor thread.
#pragma once

#include <cstdint>

#include "route/lane.hpp"
#include "route/lane_host.hpp"
#include "route/waiting_calls.hpp"

namespace bulkhead {

class LaneQueue {
 public:
  LaneQueue(const Lane &lane, LaneHost &host) : lane_(lane), host_(host) {}

  bool empty() const noexcept { return calls_.empty(); }
  // Queues the exchange. If a limit is reached, fails its call with an error and returns false. If
  // the queue is empty, a request may wait regardless of its size.
  bool add(Exchange &exchange, const CallInHand &hand);
  // Removes the first call. Returns its exchange, or null if the call has ended or must not be
  // sent. Requires !empty().
  Exchange *take();
  void remove(std::uint64_t exchange);
  // Removes the calls that have ended or are no longer on the lane.
  void remove_ended();
  void clear() noexcept { calls_.clear(); }

 private:
  const Lane &lane_;
  LaneHost &host_;
  WaitingCalls calls_;
};

}  // namespace bulkhead
