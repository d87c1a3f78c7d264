#include "counters.hpp"

#include <bulkhead/cpp/text.hpp>

#include <algorithm>
#include <iterator>

#include "json_text.hpp"
#include "uri.hpp"

namespace bulkhead::rules {
namespace {

constexpr std::uint64_t kSweepEveryMs = 1'000;
constexpr std::size_t kMaxHosts = 1'024;  // per call
constexpr std::size_t kMaxHostBytes = 256;

bool ends_with_word(std::string_view text, std::string_view word) {
  return text.size() >= word.size() &&
         bh::equal_ignoring_case(text.substr(text.size() - word.size()), word);
}

void add_host(std::string_view address, std::set<std::string> *hosts) {
  if (hosts->size() >= kMaxHosts) return;
  std::string host = web_host(address);
  if (host.find("%20") != std::string::npos) return;  // text with spaces, not a URL
  if (host.size() > kMaxHostBytes) host.resize(kMaxHostBytes);
  if (!host.empty()) hosts->insert(std::move(host));
}

}  // namespace

// A match never extends past the next slash, so the whole string is scanned only once.
void collect_hosts(std::string_view text, std::set<std::string> *hosts) {
  for (std::size_t at = text.find(':'); at != std::string_view::npos; at = text.find(':', at + 1)) {
    const std::size_t slash = at + 1;
    if (slash == text.size() || (text[slash] != '/' && text[slash] != '\\')) continue;
    const std::string_view before = text.substr(0, at);
    const bool secure = ends_with_word(before, "https");
    if (!secure && !ends_with_word(before, "http")) continue;
    const std::size_t host = std::min(text.find_first_not_of("/\\", slash), text.size());
    const std::size_t begin = at - (secure ? 5 : 4);
    const std::size_t end = std::min(text.find_first_of("/\\?# \t\r\n\"'<>", host), text.size());
    add_host(text.substr(begin, end - begin), hosts);
  }
  add_host(text, hosts);
}

// The recursion depth is limited by JsonText::kMaxDepth.
void collect_hosts(const rapidjson::Value &value, std::set<std::string> *hosts) {
  if (value.IsString()) {
    collect_hosts(text_of(value), hosts);
  } else if (value.IsObject()) {
    for (const auto &each : value.GetObject()) {
      collect_hosts(text_of(each.name), hosts);
      collect_hosts(each.value, hosts);
    }
  } else if (value.IsArray()) {
    for (const auto &each : value.GetArray()) collect_hosts(each, hosts);
  }
}

std::uint8_t Counters::kind_of(const Budget &budget) {
  return static_cast<std::uint8_t>(static_cast<unsigned>(budget.what) |
                                   (budget.by_session ? 4u : 0u) | (budget.by_principal ? 8u : 0u) |
                                   (budget.by_process ? 16u : 0u) | (budget.by_server ? 32u : 0u) |
                                   (budget.by_tool ? 64u : 0u));
}

void Counters::turn(Count &count, std::uint64_t now_ms) {
  if (count.per_ms == 0) return;
  const std::uint64_t window = now_ms / count.per_ms;
  if (window == count.window) return;
  const bool next = window == count.window + 1;
  count.before = next ? count.now : 0;
  count.seen_before = next ? std::move(count.seen) : std::set<std::string>{};
  count.now = 0;
  count.seen.clear();
  count.window = window;
}

// Changes the length of the count's window, because a policy reload has changed `per`. What counts
// in the former windows is added to the current one, so that the change never renews a budget.
void Counters::use_window(Count &count, std::uint64_t per_ms, std::uint64_t now_ms) {
  turn(count, now_ms);
  count.now = amount(count, now_ms);
  count.before = 0;
  count.seen.merge(count.seen_before);
  count.seen_before.clear();
  count.per_ms = per_ms;
  count.window = per_ms == 0 ? 0 : now_ms / per_ms;
}

std::uint64_t Counters::amount(const Count &count, std::uint64_t now_ms) {
  if (count.per_ms == 0) return count.now;
  const std::uint64_t left = count.per_ms - now_ms % count.per_ms;
  // The share is rounded up, so that rounding never lets a call exceed the budget.
  const double share = static_cast<double>(left) / static_cast<double>(count.per_ms);
  const double before = static_cast<double>(count.before) * share;
  const auto whole = static_cast<std::uint64_t>(before);
  return count.now + whole + (before > static_cast<double>(whole) ? 1 : 0);
}

// Returns the count with this key, which is created if necessary. Returns nullptr if there is no
// room for it. If a policy reload has changed what the rule counts, the count begins again.
Counters::Count *Counters::find(const Budget &budget, const std::string &key,
                                std::string_view principal, std::uint64_t now_ms) {
  auto at = counts_.find(key);
  if (at != counts_.end() && at->second.kind != kind_of(budget)) {
    erase(at);
    at = counts_.end();
  }
  Count *count = nullptr;
  if (at == counts_.end()) {
    if (counts_.size() >= kMaxCounts) make_room(now_ms);
    if (counts_.size() >= kMaxCounts) return nullptr;
    count = create(budget, key, principal);
    if (budget.per_ms != 0) count->window = now_ms / budget.per_ms;
  } else {
    count = &at->second;
    if (count->order != nullptr) EvictionOrder::use(count->place);
    if (count->per_ms != budget.per_ms) use_window(*count, budget.per_ms, now_ms);
  }
  turn(*count, now_ms);
  count->used_ms = now_ms;
  return count;
}

// The key must be new.
Counters::Count *Counters::create(const Budget &budget, std::string key,
                                  std::string_view principal) {
  const auto at = counts_.try_emplace(std::move(key)).first;
  Count &count = at->second;
  count.kind = kind_of(budget);
  count.per_ms = budget.per_ms;
  count.order = order_of(budget);
  if (count.order != nullptr) count.place = count.order->add(principal, at->first);
  return &count;
}

// Returns the order in which counts of this budget are evicted, or nullptr if they never are.
EvictionOrder *Counters::order_of(const Budget &budget) {
  if (budget.by_session) return &by_session_;
  return budget.by_process ? &by_process_ : nullptr;
}

// Removes expired counts or, if there are none, evicts a count if possible.
void Counters::make_room(std::uint64_t now_ms) {
  sweep(now_ms);
  if (counts_.size() < kMaxCounts) return;
  // If too few counts can be evicted, each one would be evicted before it has counted anything.
  if (by_session_.size() + by_process_.size() < kMaxCounts / 16) return;
  const bool session = by_session_.largest() >= by_process_.largest();
  const std::string *key = (session ? by_session_ : by_process_).next();
  if (key != nullptr) erase(counts_.find(*key));
}

void Counters::sweep(std::uint64_t now_ms) {
  if (now_ms < swept_ms_ + kSweepEveryMs && swept_ms_ != 0) return;
  swept_ms_ = now_ms;
  for (auto at = counts_.begin(); at != counts_.end();) {
    const Count &count = at->second;
    const bool idle = now_ms - count.used_ms > (count.per_ms == 0 ? kIdleMs : 2 * count.per_ms);
    at = idle ? erase(at) : std::next(at);
  }
}

Counters::Counts::iterator Counters::erase(Counts::iterator at) {
  if (at->second.order != nullptr) at->second.order->remove(at->second.place);
  return counts_.erase(at);
}

bool Counters::over(const Budget &budget, const std::string &key, const Addition &addition,
                    std::uint64_t now_ms) {
  const Count *count = find(budget, key, addition.principal, now_ms);
  if (count == nullptr) return true;
  if (budget.what == Budget::What::calls) return amount(*count, now_ms) + 1 > budget.most;
  if (budget.what == Budget::What::bytes) {
    return amount(*count, now_ms) + addition.bytes > budget.most;
  }
  // All destinations from the previous window are counted, because it is not known when they were
  // added.
  std::set<std::string> all = count->seen;
  all.insert(count->seen_before.begin(), count->seen_before.end());
  const std::size_t before = all.size();
  all.insert(addition.destinations->begin(), addition.destinations->end());
  return all.size() > budget.most && all.size() > before;
}

void Counters::add(const Budget &budget, const std::string &key, const Addition &addition,
                   std::uint64_t now_ms) {
  Count *count = find(budget, key, addition.principal, now_ms);
  if (count == nullptr) return;
  if (budget.what == Budget::What::destinations) {
    count->seen.insert(addition.destinations->begin(), addition.destinations->end());
  } else {
    count->now += budget.what == Budget::What::calls ? 1 : addition.bytes;
  }
}

void Counters::expect_result(std::uint64_t exchange, const Budget &budget, std::string key,
                             std::string_view principal) {
  if (awaited_order_.size() >= kMaxCalls) {
    awaited_.erase(awaited_order_.front());
    awaited_order_.pop_front();
  }
  auto [at, fresh] = awaited_.try_emplace(exchange);
  if (fresh) awaited_order_.push_back(exchange);
  at->second.push_back({std::move(key), std::string(principal), budget});
}

void Counters::add_result(std::uint64_t exchange, std::uint64_t bytes, std::uint64_t now_ms) {
  const auto at = awaited_.find(exchange);
  if (at == awaited_.end()) return;
  for (const Awaited &each : at->second) {
    add(each.budget, each.key, {bytes, nullptr, each.principal}, now_ms);
  }
  awaited_.erase(at);  // awaited_order_ drops its entry later
}

}  // namespace bulkhead::rules
