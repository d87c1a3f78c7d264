// Ids of sessions that were ended to make room for others. Their clients may come back with them,
// until the session would have ended for being idle.
//
// Bounds: `max` ids, some 64 bytes each; beyond it the earliest are forgotten, and their clients
// have to initialize again. Only a 64-bit hash of an id is kept: an id is sealed, so one that was
// not evicted but has the same hash is a session's of this gateway all the same. Owner: the Router.
// Thread: [io].
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace bulkhead {

class Evicted {
 public:
  explicit Evicted(std::size_t max) : max_(max) {}

  // An empty one is not kept.
  void add(std::string_view id, std::uint64_t now_ns);
  // Whether it was evicted, at most `idle_ns` ago.
  bool holds(std::string_view id, std::uint64_t now_ns, std::uint64_t idle_ns) const;
  void forget(std::string_view id) { since_.erase(key_of(id)); }
  std::size_t size() const noexcept { return since_.size(); }

 private:
  static std::uint64_t key_of(std::string_view id) noexcept {
    return std::hash<std::string_view>{}(id);
  }

  const std::size_t max_;
  std::unordered_map<std::uint64_t, std::uint64_t> since_;
  std::deque<std::pair<std::uint64_t, std::uint64_t>> order_;  // also of those that were forgotten
};

}  // namespace bulkhead
