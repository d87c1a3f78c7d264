// Saves and restores the counts; see counter_state.hpp.
#include <algorithm>
#include <limits>
#include <numeric>
#include <tuple>

#include "counter_state.hpp"
#include "counters.hpp"

namespace bulkhead::rules {
namespace {

// Far above each budget (10^12), and far below the largest number, so that a sum never overflows.
constexpr std::uint64_t kMaxAmount = 1'000'000'000'000'000'000;

std::vector<std::string_view> views(const std::set<std::string> &texts) {
  return {texts.begin(), texts.end()};
}

std::set<std::string> strings(const std::vector<std::string_view> &texts) {
  return {texts.begin(), texts.end()};
}

}  // namespace

CounterState Counters::state(std::uint64_t now_ms) const {
  CounterState out;
  std::unordered_map<const std::string *, std::size_t> levels;
  for (const EvictionOrder *order : {&by_session_, &by_process_}) {
    order->each([&](const std::string &key, std::size_t level) { levels[&key] = level; });
  }
  constexpr std::size_t kept = 0, first = std::numeric_limits<std::size_t>::max();
  std::vector<std::size_t> level_of;
  for (const auto &[key, count] : counts_) {
    const std::uint64_t window = count.per_ms == 0 ? 0 : now_ms / count.per_ms;
    const std::uint64_t ago = window - std::min(window, count.window);
    if (ago > 1) continue;  // the amount is 0
    CounterState::Count &one = out.counts.emplace_back();
    one.key = CounterState::split(key);
    one.kind = count.kind;
    one.per_ms = count.per_ms;
    one.windows_ago = ago;
    one.now = count.now;
    one.before = count.before;
    one.idle_ms = now_ms - std::min(now_ms, count.used_ms);
    if (count.order != nullptr) one.principal = count.place.group->principal;
    one.seen = views(count.seen);
    one.seen_before = views(count.seen_before);
    // Counts that have expired are omitted first, like those that sweep() removes.
    const bool expired = count.per_ms == 0 && one.idle_ms > kIdleMs;
    level_of.push_back(expired ? first : count.order == nullptr ? kept : levels[&key]);
    one.may_drop = level_of.back() != kept;
  }
  std::vector<std::size_t> numbers(out.counts.size());
  std::iota(numbers.begin(), numbers.end(), std::size_t{0});
  // By level and key, so that equal states are encoded as equal texts.
  std::sort(numbers.begin(), numbers.end(), [&](std::size_t a, std::size_t b) {
    const CounterState::Key &one = out.counts[a].key, &other = out.counts[b].key;
    return std::tie(level_of[b], one.begin, one.rest) <
           std::tie(level_of[a], other.begin, other.rest);
  });
  std::vector<CounterState::Count> sorted;
  sorted.reserve(numbers.size());
  for (const std::size_t number : numbers) sorted.push_back(std::move(out.counts[number]));
  out.counts = std::move(sorted);
  for (const std::uint64_t exchange : awaited_order_) {
    const auto at = awaited_.find(exchange);
    if (at == awaited_.end()) continue;
    CounterState::Call &call = out.awaited.emplace_back();
    call.exchange = exchange;
    for (const Awaited &each : at->second) {
      call.keys.push_back({CounterState::split(each.key), each.principal});
    }
  }
  return out;
}

// The ID of a rule is the beginning of its keys, up to a line break.
const Budget *Counters::find_budget(const Budgets &budgets, std::string_view key) {
  for (std::size_t end = key.find('\n');; end = key.find('\n', end + 1)) {
    const auto at = budgets.find(key.substr(0, end));
    if (at != budgets.end()) return at->second;
    if (end == std::string_view::npos) return nullptr;
  }
}

void Counters::restore_count(const CounterState &state, std::size_t index, const Budgets &budgets,
                             std::uint64_t now_ms) {
  const CounterState::Count &saved = state.counts[index];
  std::string key = saved.key.whole();
  const Budget *budget = find_budget(budgets, key);
  if (budget == nullptr || saved.kind != kind_of(*budget)) return;
  if (counts_.size() >= kMaxCounts || counts_.contains(key)) return;
  Count &count = *create(*budget, std::move(key), saved.principal);
  count.per_ms = saved.per_ms;
  const std::uint64_t window = saved.per_ms == 0 ? 0 : now_ms / saved.per_ms;
  count.window = window - std::min(window, saved.windows_ago);
  count.now = std::min(saved.now, kMaxAmount);
  count.before = std::min(saved.before, kMaxAmount);
  count.seen = strings(saved.seen);
  count.seen_before = strings(saved.seen_before);
  count.used_ms = now_ms - std::min(now_ms, saved.idle_ms);
  if (count.per_ms != budget->per_ms) use_window(count, budget->per_ms, now_ms);
}

void Counters::restore(const CounterState &state, const Budgets &budgets, std::uint64_t now_ms) {
  counts_.clear();
  by_session_ = {};
  by_process_ = {};
  awaited_.clear();
  awaited_order_.clear();
  // In the order of use, which is part of the eviction order.
  std::vector<std::size_t> numbers(state.counts.size());
  std::iota(numbers.begin(), numbers.end(), std::size_t{0});
  std::stable_sort(numbers.begin(), numbers.end(), [&](std::size_t a, std::size_t b) {
    return state.counts[a].idle_ms > state.counts[b].idle_ms;
  });
  for (const std::size_t number : numbers) restore_count(state, number, budgets, now_ms);
  for (const CounterState::Call &call : state.awaited) {
    for (const CounterState::CountedKey &each : call.keys) {
      std::string key = each.key.whole();
      const Budget *budget = find_budget(budgets, key);
      if (budget == nullptr || budget->what != Budget::What::bytes) continue;
      expect_result(call.exchange, *budget, std::move(key), each.principal);
    }
  }
}

}  // namespace bulkhead::rules
