// A set of ids of sessions that ended recently, with the time at which each id was added.
//
// Limits: at most `max` ids, using about 64 bytes each. Beyond that, the oldest ids are removed.
// Only a 64-bit hash of each id is stored. This is safe because ids are random and sealed: a client
// cannot create an id with the hash of another id.
//
// Owner: the Router. Runs on the reactor thread.
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

  // Ignores an empty id.
  void add(std::string_view id, std::uint64_t now_ns);
  void add_key(std::uint64_t key, std::uint64_t now_ns);
  static std::uint64_t key_of(std::string_view id) noexcept {
    return std::hash<std::string_view>{}(id);
  }
  bool holds(std::string_view id) const { return since_.contains(key_of(id)); }
  // Returns true if the id was added less than `age_ns` ago.
  bool holds(std::string_view id, std::uint64_t now_ns, std::uint64_t age_ns) const;
  void forget(std::string_view id) { since_.erase(key_of(id)); }
  std::size_t size() const noexcept { return since_.size(); }

 private:
  const std::size_t max_;
  std::unordered_map<std::uint64_t, std::uint64_t> since_;
  // In the order in which the ids were added. May contain ids that have been removed from since_.
  std::deque<std::pair<std::uint64_t, std::uint64_t>> order_;
};

}  // namespace bulkhead
