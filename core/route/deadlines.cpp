#include "route/deadlines.hpp"

#include <utility>

namespace bulkhead {
namespace {

template <class T>
void expire(NumberedTable<T> &table, std::uint64_t now_ns, std::vector<std::uint64_t> *due,
            const std::function<void(T &)> &on_due) {
  due->clear();
  table.expire(now_ns, due);
  for (const std::uint64_t id : *due) {
    if (T *object = table.get(id)) on_due(*object);
  }
}

}  // namespace

Deadlines::Deadlines(CallTable &calls, ExchangeTable &exchanges, Reactor &reactor, OnDue on_due)
    : calls_(calls), exchanges_(exchanges), reactor_(reactor), on_due_(std::move(on_due)) {}

Deadlines::~Deadlines() {
  reactor_.forget(this);
}

void Deadlines::arm(Call &call, std::uint64_t timeout_ms) {
  calls_.arm(call, reactor_.now_ns(), timeout_ms);
  start();
}

void Deadlines::arm(Exchange &exchange, std::uint64_t timeout_ms) {
  exchanges_.arm(exchange, reactor_.now_ns(), timeout_ms);
  start();
}

void Deadlines::start() {
  if (timer_ != 0) return;
  timer_ = reactor_.timer_start(this, CallTable::tick_ms, bh::callback<&Deadlines::turn>(this));
}

void Deadlines::turn() {
  timer_ = 0;
  expire(calls_, reactor_.now_ns(), &due_, on_due_.call);
  expire(exchanges_, reactor_.now_ns(), &due_, on_due_.exchange);
  if (calls_.any_armed() || exchanges_.any_armed()) start();
}

}  // namespace bulkhead
