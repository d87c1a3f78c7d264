// Limits how many sets of capabilities clients of MCP 2026-07-28 can cause to be in use. Such
// clients declare capabilities with each request, and lanes are keyed by the capabilities that are
// declared to servers. Without this limit, a client that changes its set with each request could
// start any number of connections.
//
// Used on the I/O thread. Owned by the client edge. Limit: max_sets, not counting the empty set.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "route/protocol.hpp"

namespace bulkhead {

class CapabilitySets {
 public:
  static constexpr std::size_t max_sets = 4;

  // Returns the set to use for a request that declares `caps`: the same set or, if the limit has
  // been reached, its largest known subset. At the limit, a set that was not used for idle_ns makes
  // room for a new one.
  ClientCaps admit(ClientCaps caps, std::uint64_t now_ns, std::uint64_t idle_ns) {
    const ClientCaps others = caps & ~cap::shareable;
    const ClientCaps wanted = caps & cap::shareable;
    if (wanted == 0) return others;
    for (Set &set : sets_) {
      if (set.caps != wanted) continue;
      set.used_ns = now_ns;
      return caps;
    }
    if (sets_.size() >= max_sets) {
      std::erase_if(sets_, [=](const Set &set) { return now_ns - set.used_ns >= idle_ns; });
    }
    if (sets_.size() < max_sets) {
      sets_.push_back({wanted, now_ns});
      return caps;
    }
    return others | largest_subset(wanted);
  }

 private:
  struct Set {
    ClientCaps caps = 0;
    std::uint64_t used_ns = 0;
  };
  ClientCaps largest_subset(ClientCaps wanted) const noexcept {
    ClientCaps largest = 0;
    for (const Set &set : sets_) {
      const bool subset = (set.caps & ~wanted) == 0;
      if (subset && std::popcount(set.caps) > std::popcount(largest)) largest = set.caps;
    }
    return largest;
  }

  std::vector<Set> sets_;
};

}  // namespace bulkhead
