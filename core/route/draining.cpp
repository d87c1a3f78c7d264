#include "route/draining.hpp"

#include <algorithm>
#include <utility>

namespace bulkhead {
namespace {

constexpr std::uint64_t check_ms = 50;

}  // namespace

Draining::~Draining() {
  reactor_.forget(this);
}

void Draining::add(Upstreams::List gone) {
  for (auto &upstream : gone) {
    upstream->drain_until_ns = reactor_.now_ns() + limits_.drain_ms * 1'000'000u;
    list_.push_back(std::move(upstream));
  }
  if (list_.empty()) return;
  start_timer();
  look_later();
}

bool Draining::has(const Upstream *upstream) const noexcept {
  return std::any_of(list_.begin(), list_.end(),
                     [upstream](const auto &candidate) { return candidate.get() == upstream; });
}

bool Draining::is_busy(const Lane &lane) const {
  for (const auto &other : lane.upstream().lanes()) {
    if (other->pool_of == &lane && is_busy(*other)) return true;
  }
  for (const Exchange *e = lane.exchanges.head; e != nullptr; e = e->lane_next) {
    if (e->call != nullptr) return true;
  }
  return !owner_.waiting_for(lane).empty();
}

void Draining::start_timer() {
  if (timer_ != 0) return;
  timer_ = reactor_.timer_start(this, check_ms, bh::callback(this, [](Draining &self) {
                                  self.timer_ = 0;
                                  self.look();
                                  if (!self.list_.empty()) self.start_timer();
                                }));
}

void Draining::look_later() {
  if (list_.empty() || std::exchange(pending_, true)) return;
  reactor_.defer(this, bh::callback(this, [](Draining &self) {
                   self.pending_ = false;
                   self.look();
                 }));
}

void Draining::look() {
  if (list_.empty() || ended_) return;
  const std::uint64_t now = reactor_.now_ns();
  for (const auto &upstream : list_) {
    std::vector<Lane *> done;
    for (const auto &lane : upstream->lanes()) {
      // If a draining lane loses its connection, it is not reconnected, so its calls fail
      // immediately.
      const bool over = now >= upstream->drain_until_ns || lane->state() == LaneState::waiting;
      if (over) end_calls(*lane);
      if (!is_busy(*lane)) done.push_back(lane.get());
    }
    for (Lane *lane : done) upstream->remove(lane);
  }
  const std::size_t before = list_.size();
  std::erase_if(list_, [](const auto &upstream) { return upstream->lanes().empty(); });
  if (list_.size() != before) owner_.drained();
}

void Draining::end_calls(Lane &lane) {
  std::vector<std::uint64_t> ids = owner_.waiting_for(lane);
  for (const Exchange *e = lane.exchanges.head; e != nullptr; e = e->lane_next) {
    if (e->call != nullptr) ids.push_back(e->call->id);
  }
  for (const std::uint64_t id : ids) {
    if (Call *call = calls_.get(id)) owner_.end_drained(*call, lane);
  }
}

void Draining::end_all() {
  ended_ = true;
  for (auto &upstream : list_) {
    while (!upstream->lanes().empty()) upstream->remove(upstream->lanes().back().get());
  }
}

}  // namespace bulkhead
