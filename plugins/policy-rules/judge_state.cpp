// Exports and imports the state of a Judge; see counter_state.hpp.
#include "counter_state.hpp"
#include "judge.hpp"

namespace bulkhead::rules {

std::expected<std::string, std::string> Judge::export_state(std::size_t max_bytes) const {
  CounterState state = counters_.state(clock_.steady_ms());
  for (const std::uint64_t exchange : asked_order_) {
    const auto at = asked_.find(exchange);
    if (at == asked_.end()) continue;
    CounterState::Call &call = state.asked.emplace_back();
    call.exchange = exchange;
    for (const std::string &key : at->second) {
      call.keys.push_back({CounterState::split(key), {}});
    }
  }
  return encode(state, max_bytes);
}

bool Judge::import_state(const RuleSet &set, std::string_view text) {
  CounterState state;
  if (!decode(text, &state)) return false;
  Counters::Budgets budgets;
  for (const std::vector<Rule> &rules : set.rules) {
    for (const Rule &rule : rules) {
      if (rule.over) budgets.emplace(rule.id, &*rule.over);
    }
  }
  counters_.restore(state, budgets, clock_.steady_ms());
  asked_.clear();
  asked_order_.clear();
  for (const CounterState::Call &call : state.asked) {
    if (asked_.size() >= kMaxAsked) break;
    const auto [at, fresh] = asked_.try_emplace(call.exchange);
    if (!fresh) continue;
    for (const CounterState::CountedKey &each : call.keys) at->second.push_back(each.key.whole());
    asked_order_.push_back(call.exchange);
  }
  return true;
}

}  // namespace bulkhead::rules
