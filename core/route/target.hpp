// The target of a call, and the state of a parked call.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "catalog/catalogue.hpp"
#include "route/message.hpp"

namespace bulkhead {

class Lane;

// The result of resolving a name. A name is resolved only once, so the lane sends the call to the
// same target that the policy has evaluated.
struct Target {
  Lane *lane = nullptr;
  Resolved resolved;
  mcp::Range range;       // of the name, URI or task id token in the message
  std::string tool = {};  // for a request about a task: the tool whose call created it
  // For a request about a task: the connection of the lane that has the task; 0: any.
  std::uint64_t connection = 0;
};

// A call that a pipeline step is currently handling; see Calls. Borrows the message.
struct CallInHand {
  Message message;
  Target target;
  std::string arguments;     // `arguments` as rewritten by a policy; empty if unchanged
  ParkedMessage kept;        // for a call that has waited: the owner of `message`
  std::string state = {};    // the server's own `requestState`, sent in place of the client's
  std::uint32_t judged = 0;  // number of policy evaluations since the call last waited
};

// A parked call, or a parked response from a server.
struct ParkedCall {
  ParkedMessage message;
  Target target;                 // unused for a response
  std::string arguments, state;  // see CallInHand
  std::size_t bytes = 0;         // counted in WaitingBytes, or 0

  CallInHand in_hand() const { return {message.get(), target, arguments, message, state, 0}; }
};

// Returns the call in its parked form. The message is copied unless it is already parked.
inline ParkedCall parked(const CallInHand &hand) {
  return {hand.kept.empty() ? ParkedMessage(hand.message) : hand.kept, hand.target, hand.arguments,
          hand.state, 0};
}

}  // namespace bulkhead
