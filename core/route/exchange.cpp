#include "route/exchange.hpp"

#include <algorithm>

namespace bulkhead {
namespace {

constexpr std::uint64_t ns_per_tick = ExchangeTable::tick_ms * 1'000'000u;
constexpr std::uint32_t generation_mask = (1u << 30) - 1;

}  // namespace

void Account::clear(std::size_t max_capacity) noexcept {
  for (std::string *text : {&request, &response, &trace_id, &rule, &reason}) {
    if (text->capacity() > max_capacity) std::string().swap(*text);
    text->clear();
  }
  params_bytes = result_bytes = arguments_begin = arguments_end = 0;
  intent = 0;
  action = flags = events = 0;
  dispatched = recorded = more_than_arguments = false;
}

Exchange *ExchangeTable::open() {
  std::uint32_t index;
  if (free_.empty()) {
    if (slots_.size() >= max_exchanges) return nullptr;
    index = static_cast<std::uint32_t>(slots_.size());
    slots_.emplace_back().index = index;
  } else {
    index = free_.back();
    free_.pop_back();
  }
  Exchange &e = slots_[index];
  e.generation = (e.generation + 1) & generation_mask;
  if (e.generation == 0) e.generation = 1;
  e.id = (static_cast<std::uint64_t>(e.generation) << index_bits) | index;
  ++open_;
  return &e;
}

Exchange *ExchangeTable::get(std::uint64_t id) noexcept {
  const std::uint64_t index = id & (max_exchanges - 1);
  if (id == 0 || index >= slots_.size()) return nullptr;
  Exchange &e = slots_[index];
  return e.id == id ? &e : nullptr;
}

void ExchangeTable::close(Exchange &e) {
  disarm(e);
  e.id = 0;
  e.purpose = Purpose::call;
  e.method = mcp::Method::none;
  e.sent = false;
  e.takes_place = true;
  e.open_asks = 0;
  e.asked_about = false;
  e.stage = Stage::open;
  e.waited = e.judged = e.approved = false;
  e.approved_rule.clear();
  e.rules = 0;
  e.parked = nullptr;
  e.reply = {};
  e.session = nullptr;
  e.lane = e.watches = nullptr;
  e.client_id.clear();
  e.client_token.clear();
  e.server.clear();
  e.name.clear();
  free_.push_back(e.index);
  --open_;
}

void ExchangeTable::arm(Exchange &e, std::uint64_t now_ns, std::uint64_t timeout_ms) {
  disarm(e);
  if (armed_ == 0) last_tick_ = now_ns / ns_per_tick;
  const std::uint64_t ticks = (timeout_ms + tick_ms - 1) / tick_ms;
  // One more, since the current tick has partly gone. Early is a deadline only by what this turn of
  // the loop has taken before it, since now_ns is the turn's beginning.
  e.deadline_tick = now_ns / ns_per_tick + ticks + 1;
  Exchange *&head = wheel_[e.deadline_tick % wheel_slots];
  e.wheel_prev = nullptr;
  e.wheel_next = head;
  if (head != nullptr) head->wheel_prev = &e;
  head = &e;
  ++armed_;
}

void ExchangeTable::disarm(Exchange &e) {
  if (e.deadline_tick == 0) return;
  if (e.wheel_prev != nullptr) e.wheel_prev->wheel_next = e.wheel_next;
  if (e.wheel_next != nullptr) e.wheel_next->wheel_prev = e.wheel_prev;
  Exchange *&head = wheel_[e.deadline_tick % wheel_slots];
  if (head == &e) head = e.wheel_next;
  e.wheel_prev = e.wheel_next = nullptr;
  e.deadline_tick = 0;
  --armed_;
}

void ExchangeTable::expire(std::uint64_t now_ns, std::vector<std::uint64_t> *due) {
  const std::uint64_t now_tick = now_ns / ns_per_tick;
  // After a long sleep each slot is looked at once, not once per missed tick.
  const std::uint64_t first =
      std::max(last_tick_ + 1, now_tick >= wheel_slots ? now_tick - wheel_slots + 1 : 0);
  for (std::uint64_t tick = first; tick <= now_tick; ++tick) {
    for (Exchange *e = wheel_[tick % wheel_slots]; e != nullptr;) {
      Exchange *next = e->wheel_next;
      if (e->deadline_tick <= now_tick) {
        due->push_back(e->id);
        disarm(*e);
      }
      e = next;
    }
  }
  last_tick_ = std::max(last_tick_, now_tick);
}

}  // namespace bulkhead
