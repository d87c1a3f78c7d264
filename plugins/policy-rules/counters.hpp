// Counts calls, bytes and destinations for rules with a budget (`over`). Single-threaded.
//
// If there are kMaxCounts counts and none has expired, a new count evicts a count by session or by
// process, in the order of EvictionOrder. A client can always get a new count of these kinds in
// another session or process, so it gains nothing from an eviction. Other counts are not evicted,
// because that would renew the budget of a principal, server or tool. If less than 1/16 of all
// counts can be evicted, there is no room for a new count.
#pragma once

#include <rapidjson/document.h>

#include <cstdint>
#include <deque>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "eviction_order.hpp"
#include "rule.hpp"

namespace bulkhead::rules {

struct CounterState;

class Counters {
 public:
  static constexpr std::size_t kMaxCounts = 65'536;
  static constexpr std::size_t kMaxCalls = 65'536;  // latest calls whose results are counted
  // If room is needed, a count without a window (`per`) expires after being unused for this long.
  static constexpr std::uint64_t kIdleMs = 24ull * 3'600'000;

  // The amounts that one call adds to a count, and the principal whose call it is.
  struct Addition {
    std::uint64_t bytes = 0;
    const std::set<std::string> *destinations = nullptr;
    std::string_view principal{};
  };

  // Returns true if the call would exceed the budget, or if it needs a new count and there is no
  // room for one. `key` identifies the count: it combines the rule with the call's values of the
  // attributes in the budget's `by` list.
  bool over(const Budget &budget, const std::string &key, const Addition &addition,
            std::uint64_t now_ms);
  void add(const Budget &budget, const std::string &key, const Addition &addition,
           std::uint64_t now_ms);

  // Registers a call, so that add_result() adds the size of its result to the count `key`.
  void expect_result(std::uint64_t exchange, const Budget &budget, std::string key,
                     std::string_view principal);
  void add_result(std::uint64_t exchange, std::uint64_t bytes, std::uint64_t now_ms);

  // Returns the counts and the registered calls. The strings are borrowed until the next change.
  CounterState state(std::uint64_t now_ms) const;
  // Replaces all counts and registered calls. `budgets` maps the IDs of the rules to their budgets.
  // What belongs to another rule, or to a rule that counts something else now, is ignored. Values
  // that could not have been reached by now are reduced to the nearest possible ones.
  using Budgets = std::unordered_map<std::string_view, const Budget *>;
  void restore(const CounterState &state, const Budgets &budgets, std::uint64_t now_ms);

  std::size_t size() const { return counts_.size(); }

 private:
  // The amounts for the current and the previous window. To approximate a sliding window of length
  // `per`, a share of the amount for the previous window is added to the current one.
  struct Count {
    std::uint8_t kind = 0;     // see kind_of()
    std::uint64_t window = 0;  // window number since time 0
    std::uint64_t now = 0, before = 0;
    std::set<std::string> seen, seen_before;
    std::uint64_t used_ms = 0, per_ms = 0;
    EvictionOrder *order = nullptr;  // nullptr if the count is never evicted
    EvictionOrder::Place place;      // in `order`
  };
  using Counts = std::unordered_map<std::string, Count>;
  struct Awaited {
    std::string key, principal;
    Budget budget;
  };

  // Identifies what a budget counts, and by which attributes.
  static std::uint8_t kind_of(const Budget &budget);
  static const Budget *find_budget(const Budgets &budgets, std::string_view key);
  Count *create(const Budget &budget, std::string key, std::string_view principal);
  void restore_count(const CounterState &state, std::size_t index, const Budgets &budgets,
                     std::uint64_t now_ms);
  static void turn(Count &count, std::uint64_t now_ms);
  static void use_window(Count &count, std::uint64_t per_ms, std::uint64_t now_ms);
  static std::uint64_t amount(const Count &count, std::uint64_t now_ms);
  Count *find(const Budget &budget, const std::string &key, std::string_view principal,
              std::uint64_t now_ms);
  EvictionOrder *order_of(const Budget &budget);
  void make_room(std::uint64_t now_ms);
  void sweep(std::uint64_t now_ms);
  Counts::iterator erase(Counts::iterator at);

  Counts counts_;
  EvictionOrder by_session_, by_process_;
  std::unordered_map<std::uint64_t, std::vector<Awaited>> awaited_;
  std::deque<std::uint64_t> awaited_order_;
  std::uint64_t swept_ms_ = 0;
};

// Adds the hosts of all http and https URLs in a string, in lower case. The string may be a URL or
// contain URLs. If the set already has 1,024 hosts, adds none.
void collect_hosts(std::string_view text, std::set<std::string> *hosts);
// Adds the hosts from all strings and member names of a JSON value.
void collect_hosts(const rapidjson::Value &value, std::set<std::string> *hosts);

}  // namespace bulkhead::rules
