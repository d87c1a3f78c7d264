#include "route/deadlines.hpp"

#include <utility>

namespace bulkhead {

Deadlines::Deadlines(ExchangeTable &exchanges, Reactor &reactor,
                     std::function<void(Exchange &)> on_due)
    : exchanges_(exchanges), reactor_(reactor), on_due_(std::move(on_due)) {}

Deadlines::~Deadlines() {
  reactor_.forget(this);
}

void Deadlines::arm(Exchange &exchange, std::uint64_t timeout_ms) {
  exchange.timeout_ms = timeout_ms;
  exchanges_.arm(exchange, reactor_.now_ns(), timeout_ms);
  start();
}

void Deadlines::start() {
  if (timer_ != 0) return;
  timer_ = reactor_.timer_start(
      this, ExchangeTable::tick_ms, [](void *arg) { static_cast<Deadlines *>(arg)->turn(); }, this);
}

void Deadlines::turn() {
  timer_ = 0;
  due_.clear();
  exchanges_.expire(reactor_.now_ns(), &due_);
  for (const std::uint64_t id : due_) {
    if (Exchange *e = exchanges_.get(id)) on_due_(*e);
  }
  if (exchanges_.any_armed()) start();
}

}  // namespace bulkhead
