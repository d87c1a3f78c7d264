// What has happened so far, for rules with `over`. Thread: one.
#pragma once

#include <rapidjson/document.h>

#include <cstdint>
#include <deque>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "rule.hpp"

namespace bulkhead::rules {

class Counters {
 public:
  static constexpr std::size_t kMostCounts = 65'536;
  static constexpr std::size_t kMostCalls = 65'536;  // under way, whose results will count
  static constexpr std::uint64_t kIdleMs = 24ull * 3'600'000;  // of a count without `per`

  // What one call adds.
  struct Addition {
    std::uint64_t bytes = 0;
    const std::set<std::string> *destinations = nullptr;
  };

  // Would the call take the count beyond the budget? True also when there is no room for another
  // count. `key`: of the rule and of what it counts by.
  bool over(const Budget &budget, const std::string &key, const Addition &addition,
            std::uint64_t now_ms);
  void add(const Budget &budget, const std::string &key, const Addition &addition,
           std::uint64_t now_ms);

  // The result of this call will count for `key`, too.
  void expect_result(std::uint64_t exchange, const Budget &budget, std::string key);
  void add_result(std::uint64_t exchange, std::uint64_t bytes, std::uint64_t now_ms);

  std::size_t size() const { return counts_.size(); }

 private:
  // Two windows behind each other: of the one before, as much counts as the last `per` covers.
  struct Count {
    std::uint64_t window = 0;  // its number since time 0
    std::uint64_t now = 0, before = 0;
    std::set<std::string> seen, seen_before;
    std::uint64_t used_ms = 0, per_ms = 0;
  };
  struct Awaited {
    std::string key;
    Budget budget;
  };

  static void turn(Count &count, const Budget &budget, std::uint64_t now_ms);
  static std::uint64_t amount(const Count &count, std::uint64_t now_ms);
  Count *find(const Budget &budget, const std::string &key, std::uint64_t now_ms);
  void sweep(std::uint64_t now_ms);

  std::unordered_map<std::string, Count> counts_;
  std::unordered_map<std::uint64_t, std::vector<Awaited>> awaited_;
  std::deque<std::uint64_t> awaited_order_;
  std::uint64_t swept_ms_ = 0;
};

// Adds the hosts of the http and https addresses in a text, in lower case: those that stand in it,
// and that of the text as a whole, if a URL parser would take it for such an address.
void collect_hosts(std::string_view text, std::set<std::string> *hosts);
// The same for all strings of a JSON value, names of members among them.
void collect_hosts(const rapidjson::Value &value, std::set<std::string> *hosts);

}  // namespace bulkhead::rules
