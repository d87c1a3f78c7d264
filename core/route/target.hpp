// Where a call goes, and what waits with it.
#pragma once

#include <string>
#include <utility>

#include "catalog/catalogue.hpp"
#include "route/message.hpp"

namespace bulkhead {

class Lane;

// What its name was resolved to, once: what is judged here is what is sent; it is not looked up
// again.
struct Target {
  Lane *lane = nullptr;
  Resolved resolved;
  mcp::Range range;  // of the name or URI token in the message
};

// A call on its way. Borrows the message.
struct CallInHand {
  Message message;
  Target target;
  std::string arguments;  // a policy's rewrite of `arguments`; empty: as they came
  ParkedMessage kept;     // of a call that has waited: what `message` borrows
};

// A call that waits, or a server's answer that does.
struct ParkedCall {
  ParkedMessage message;
  Target target;          // not of an answer
  std::string arguments;  // as in CallInHand
  std::size_t bytes = 0;  // of them, counted in WaitingBytes; 0: not counted there

  CallInHand in_hand() const { return {message.get(), target, arguments, message}; }
};

// What waits with this call; the message is copied unless it was kept before.
inline ParkedCall parked(const CallInHand &hand) {
  return {hand.kept.empty() ? ParkedMessage(hand.message) : hand.kept, hand.target, hand.arguments,
          0};
}

}  // namespace bulkhead
