// Parks waiting calls: copies the message once, counts its bytes, and arms the stage's deadline.
//
// Owner: the Router. Runs on the reactor thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "profile/profile.hpp"
#include "route/call.hpp"
#include "route/deadlines.hpp"
#include "route/waiting_bytes.hpp"

namespace bulkhead {

class CallParking {
 public:
  CallParking(const Limits &limits, Deadlines &deadlines, WaitingBytes &waiting)
      : limits_(limits), deadlines_(deadlines), waiting_(waiting) {}

  // If limits.policy_waiting_bytes would be exceeded, returns false and changes nothing. Calls that
  // wait for human approval or for input do not count towards this limit; ApprovalDesk and
  // InputRounds limit them.
  bool park(Call &call, const CallInHand &hand, Stage stage) const;
  bool park_answer(Call &call, const Message &answer, Stage stage) const;
  // Ends the wait: sets the stage to `open` and returns what was parked. Requires call.parked. The
  // deadline stays armed.
  CallInHand take(Call &call) const;
  // Like take(), but for a call that is ending: the parked message is discarded.
  void discard(Call &call) const;

 private:
  void wait(Call &call, Stage stage, std::size_t bytes) const;

  const Limits &limits_;
  Deadlines &deadlines_;
  WaitingBytes &waiting_;
};

}  // namespace bulkhead
