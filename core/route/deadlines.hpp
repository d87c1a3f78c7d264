// Deadlines for calls, and for requests that lanes themselves send. All deadlines share one reactor
// timer.
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
  // Called when the deadline of a call or exchange has expired. The deadline has already been
  // removed. The callback may end the call or exchange.
  struct OnDue {
    std::function<void(Call &)> call;
    std::function<void(Exchange &)> exchange;
  };
  Deadlines(CallTable &calls, ExchangeTable &exchanges, Reactor &reactor, OnDue on_due);
  ~Deadlines();
  Deadlines(const Deadlines &) = delete;
  Deadlines &operator=(const Deadlines &) = delete;

  // Replaces the call's deadline. The resolution is CallTable::tick_ms.
  void arm(Call &call, std::uint64_t timeout_ms);
  // Sets the deadline of a request that the lane itself sends. An exchange that belongs to a call
  // uses the call's deadline instead.
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
