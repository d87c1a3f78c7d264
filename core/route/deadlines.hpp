// Deadlines for calls and for the lanes' own requests, using a single timer.
//
// Owner: the Router. Runs on the reactor thread.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "reactor/reactor.hpp"
#include "route/call.hpp"
#include "route/exchange.hpp"

namespace bulkhead {

class Deadlines {
 public:
  // Each function receives an object whose deadline has passed. The object has already been
  // disarmed, and the function may end it.
  struct OnDue {
    std::function<void(Call &)> call;
    std::function<void(Exchange &)> exchange;
  };
  Deadlines(CallTable &calls, ExchangeTable &exchanges, Reactor &reactor, OnDue on_due);
  ~Deadlines();
  Deadlines(const Deadlines &) = delete;
  Deadlines &operator=(const Deadlines &) = delete;

  // Replaces the deadline; the resolution is CallTable::tick_ms.
  void arm(Call &call, std::uint64_t timeout_ms);
  // Used for a lane's own exchange. The exchange of a call uses the call's deadline.
  void arm(Exchange &exchange, std::uint64_t timeout_ms);
  // Removes the deadline until the call is armed again.
  void suspend(Call &call) { calls_.disarm(call); }

 private:
  void start();
  void turn();

  CallTable &calls_;
  ExchangeTable &exchanges_;
  Reactor &reactor_;
  const OnDue on_due_;
  std::vector<std::uint64_t> due_;
  std::uint64_t timer_ = 0;
};

}  // namespace bulkhead
