// Counters for rules with `over`. Single-threaded.
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
  static constexpr std::size_t kMaxCounts = 65'536;
  static constexpr std::size_t kMaxCalls = 65'536;  // in-flight calls whose results are counted
  // An unused count without `per` expires after this time.
  static constexpr std::uint64_t kIdleMs = 24ull * 3'600'000;

  // The amounts that one call adds.
  struct Addition {
    std::uint64_t bytes = 0;
    const std::set<std::string> *destinations = nullptr;
  };

  // Returns true if the call would exceed the budget or if the maximum number of counts has been
  // reached. `key` combines the rule and the call's counting keys.
  bool over(const Budget &budget, const std::string &key, const Addition &addition,
            std::uint64_t now_ms);
  void add(const Budget &budget, const std::string &key, const Addition &addition,
           std::uint64_t now_ms);

  // This call's result will also be counted for `key`.
  void expect_result(std::uint64_t exchange, const Budget &budget, std::string key);
  void add_result(std::uint64_t exchange, std::uint64_t bytes, std::uint64_t now_ms);

  std::size_t size() const { return counts_.size(); }

 private:
  // The counts of two consecutive windows. The previous window is counted proportionally, so that
  // both windows together cover the last `per`.
  struct Count {
    std::uint64_t window = 0;  // window number, counted from time 0
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

// Adds the hosts of http and https URLs in a string, in lower case. This includes URLs within the
// string, and the whole string if a URL parser would accept it.
void collect_hosts(std::string_view text, std::set<std::string> *hosts);
// Adds the hosts in all strings of a JSON value, including member names.
void collect_hosts(const rapidjson::Value &value, std::set<std::string> *hosts);

}  // namespace bulkhead::rules
