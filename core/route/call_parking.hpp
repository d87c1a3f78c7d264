// Parks calls that wait: copies their message once, counts its bytes, arms the deadline of the
// stage. Thread: I/O thread. Owned by the Router.
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

  // False: limits.policy_waiting_bytes is reached, and nothing has changed. Calls that wait for a
  // person are not counted there; the ApprovalDesk limits them.
  bool park(Call &call, const CallInHand &hand, Stage stage) const;
  bool park_answer(Call &call, const Message &answer, Stage stage) const;
  // Ends the wait: the stage is open again.
  CallInHand take(Call &call) const;
  // Likewise of a call that ends.
  void discard(Call &call) const;

 private:
  void wait(Call &call, Stage stage, std::size_t bytes) const;

  const Limits &limits_;
  Deadlines &deadlines_;
  WaitingBytes &waiting_;
};

}  // namespace bulkhead
