// Deadlines of calls and of the requests of lanes, on one timer. Thread: I/O thread. Owned by the
// Router.
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
  // The functions receive what is due; it is disarmed, and may be ended inside.
  struct OnDue {
    std::function<void(Call &)> call;
    std::function<void(Exchange &)> exchange;
  };
  Deadlines(CallTable &calls, ExchangeTable &exchanges, Reactor &reactor, OnDue on_due);
  ~Deadlines();
  Deadlines(const Deadlines &) = delete;
  Deadlines &operator=(const Deadlines &) = delete;

  // Replaces the deadline; its resolution is CallTable::tick_ms.
  void arm(Call &call, std::uint64_t timeout_ms);
  // Of a lane's own exchange: the deadline of a call's exchange is the call's.
  void arm(Exchange &exchange, std::uint64_t timeout_ms);
  // The call has no deadline until it is armed again.
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
