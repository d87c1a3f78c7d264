// Ids of sessions that were ended to make room for others. Their clients may come back with them,
// until the session would have ended for being idle.
//
// Bounds: `max` ids, of at most max_id_bytes each; beyond it the earliest are forgotten, and their
// clients have to initialize again. Owner: the Router. Thread: [io].
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>

namespace bulkhead {

class Evicted {
 public:
  static constexpr std::size_t max_id_bytes = 64;

  explicit Evicted(std::size_t max) : max_(max) {}

  // Longer ids and empty ones are not kept.
  void add(std::string_view id, std::uint64_t now_ns);
  // Whether it was evicted, at most `idle_ns` ago.
  bool holds(std::string_view id, std::uint64_t now_ns, std::uint64_t idle_ns) const;
  void forget(std::string_view id) { since_.erase(std::string(id)); }
  std::size_t size() const noexcept { return since_.size(); }

 private:
  const std::size_t max_;
  std::unordered_map<std::string, std::uint64_t> since_;
  std::deque<std::pair<std::string, std::uint64_t>> order_;  // also of those that were forgotten
};

}  // namespace bulkhead
