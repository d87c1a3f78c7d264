#include "route/lane_queue.hpp"

#include <string>

#include "route/upstream.hpp"

namespace bulkhead {

bool LaneQueue::add(Exchange &e, const CallInHand &hand) {
  const Limits &limits = host_.limits();
  const std::uint64_t bytes = hand.message.size() + hand.arguments.size();
  const char *bound = nullptr;
  if (calls_.size() >= limits.queued_per_server) {
    bound = "limits.queued_per_server";
  } else if (!calls_.empty() && calls_.bytes() + bytes > limits.write_queue_bytes) {
    bound = "limits.write_queue_bytes";
  }
  if (bound != nullptr) {
    host_.fail_call(*e.call, code::timeout,
                    "server \"" + lane_.upstream().name() +
                        "\" is busy: " + std::to_string(calls_.size()) + " calls of " +
                        std::to_string(calls_.bytes()) + " bytes are already queued (" + bound +
                        ")",
                    BH_OUTCOME_ERROR);
    return false;
  }
  queue_in_lane(*e.call, hand);
  calls_.push({e.id, bytes});
  return true;
}

Exchange *LaneQueue::take() {
  Exchange *e = host_.exchanges().get(calls_.pop().exchange);
  return e != nullptr && host_.may_be_sent(*e->call) ? e : nullptr;
}

void LaneQueue::remove(std::uint64_t exchange) {
  calls_.erase_if([exchange](std::uint64_t waiting) { return waiting == exchange; });
}

// A call whose error waits for the policy is no longer on the lane.
void LaneQueue::remove_ended() {
  calls_.erase_if([this](std::uint64_t waiting) {
    const Exchange *e = host_.exchanges().get(waiting);
    return e == nullptr || e->lane != &lane_;
  });
}

}  // namespace bulkhead
