// The ids of the last sessions that ended in one way, and when.
//
// Bounds: `max` ids, some 64 bytes each; beyond it the earliest are forgotten. Only a 64-bit hash
// of an id is kept: ids are random and sealed, so no client can choose one with the hash of
// another. Owner: the Router. Thread: [io].
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace bulkhead {

class RecentIds {
 public:
  explicit RecentIds(std::size_t max) : max_(max) {}

  // An empty one is not kept.
  void add(std::string_view id, std::uint64_t now_ns);
  void add_key(std::uint64_t key, std::uint64_t now_ns);
  static std::uint64_t key_of(std::string_view id) noexcept {
    return std::hash<std::string_view>{}(id);
  }
  bool holds(std::string_view id) const { return since_.contains(key_of(id)); }
  // Whether it was added less than `age_ns` ago.
  bool holds(std::string_view id, std::uint64_t now_ns, std::uint64_t age_ns) const;
  void forget(std::string_view id) { since_.erase(key_of(id)); }
  std::size_t size() const noexcept { return since_.size(); }

 private:
  const std::size_t max_;
  std::unordered_map<std::uint64_t, std::uint64_t> since_;
  std::deque<std::pair<std::uint64_t, std::uint64_t>> order_;  // also of those that were forgotten
};

}  // namespace bulkhead
