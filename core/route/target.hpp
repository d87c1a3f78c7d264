// The target of a call, and the state of a call that waits.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "catalog/catalogue.hpp"
#include "route/message.hpp"

namespace bulkhead {

class Lane;

// The result of resolving a name, once: the policy evaluates this target and the lane sends to it.
// The name is not resolved again.
struct Target {
  Lane *lane = nullptr;
  Resolved resolved;
  mcp::Range range;  // of the name or URI token in the message
};

// A call during a step. Borrows the message.
struct CallInHand {
  Message message;
  Target target;
  std::string arguments;     // replacement of `arguments` by a policy; empty: none
  ParkedMessage kept;        // of a call that has waited: the owner of `message`
  std::uint32_t judged = 0;  // how often the policy was asked since the call has waited
};

// A parked call, or a server's parked answer.
struct ParkedCall {
  ParkedMessage message;
  Target target;          // not of an answer
  std::string arguments;  // as in CallInHand
  std::size_t bytes = 0;  // counted in WaitingBytes; 0: not counted

  CallInHand in_hand() const { return {message.get(), target, arguments, message, 0}; }
};

// Parks a call; the message is copied unless it was parked before.
inline ParkedCall parked(const CallInHand &hand) {
  return {hand.kept.empty() ? ParkedMessage(hand.message) : hand.kept, hand.target, hand.arguments,
          0};
}

}  // namespace bulkhead
