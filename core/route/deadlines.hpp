// The time of exchanges: one timer for all of them. Owner: the Router. Thread: [io].
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "reactor/reactor.hpp"
#include "route/exchange.hpp"

namespace bulkhead {

class Deadlines {
 public:
  // on_due: the exchange's time is over; it is disarmed, and may be ended inside.
  Deadlines(ExchangeTable &exchanges, Reactor &reactor, std::function<void(Exchange &)> on_due);
  ~Deadlines();
  Deadlines(const Deadlines &) = delete;
  Deadlines &operator=(const Deadlines &) = delete;

  // Anew, from now on. As exact as ExchangeTable::tick_ms.
  void arm(Exchange &exchange, std::uint64_t timeout_ms);
  // Until it is armed again it has no end.
  void suspend(Exchange &exchange) { exchanges_.disarm(exchange); }

 private:
  void start();
  void turn();

  ExchangeTable &exchanges_;
  Reactor &reactor_;
  const std::function<void(Exchange &)> on_due_;
  std::vector<std::uint64_t> due_;
  std::uint64_t timer_ = 0;
};

}  // namespace bulkhead
