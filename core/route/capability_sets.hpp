// Limits the number of different sets of capabilities that the clients of one protocol generation
// can use. Lanes are keyed by the capabilities that are declared to servers. Without this limit, a
// client that declares a different set in each session or (MCP 2026-07-28) with each request could
// open a large number of connections.
//
// At the limit, a new set replaces the least recently declared set that no session or request uses
// and that was not declared within idle_ns(). A client that keeps all sets in use or declares them
// more often can therefore prevent other clients from using other sets.
//
// Used on the reactor thread. Owned by the client edge. Only the capabilities in cap::shareable
// belong to a set. The limit does not count the empty set.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <memory>
#include <vector>

#include "profile/profile.hpp"
#include "route/protocol.hpp"

namespace bulkhead {

class CapabilitySets {
 public:
  static constexpr std::size_t for_requests = 4, for_sessions = 8;
  // A set that was declared within this time, or within limits.idle_view_ms if that is shorter, is
  // not replaced, because each replacement can start and stop processes.
  static constexpr std::uint64_t max_idle_ms = 5'000;

  static std::uint64_t idle_ns(const Limits &limits) noexcept {
    return std::min(limits.idle_view_ms, max_idle_ms) * 1'000'000u;
  }

  explicit CapabilitySets(std::size_t max_sets) : max_sets_(max_sets) {}

  struct Admitted {
    ClientCaps caps = 0;      // the set to use
    ClientCaps replaced = 0;  // the set that made room for it; 0: none
    // While a copy of this exists, a session or request uses the set. Null for the empty set.
    std::shared_ptr<const void> use{};
  };
  // Returns the set to use for a session or request that declares `caps`: the same set or, if the
  // limit has been reached and no set can be replaced, its largest known subset. Capabilities that
  // are not in cap::shareable are returned unchanged.
  Admitted admit(ClientCaps caps, std::uint64_t now_ns, std::uint64_t idle_ns) {
    const ClientCaps others = caps & ~cap::shareable;
    const ClientCaps wanted = caps & cap::shareable;
    if (wanted == 0) return {others};
    for (Set &set : sets_) {
      if (set.caps != wanted) continue;
      set.used_ns = now_ns;
      return {caps, 0, set.use};
    }
    if (sets_.size() < max_sets_) {
      sets_.push_back({wanted, now_ns});
      return {caps, 0, sets_.back().use};
    }
    Set *oldest = nullptr;
    for (Set &set : sets_) {
      const bool idle = now_ns - set.used_ns >= idle_ns && set.use.use_count() == 1;
      if (idle && (oldest == nullptr || set.used_ns < oldest->used_ns)) oldest = &set;
    }
    if (oldest == nullptr) {
      const Set subset = largest_subset(wanted);
      return {others | subset.caps, 0, subset.use};
    }
    const ClientCaps replaced = oldest->caps;
    *oldest = {wanted, now_ns};
    return {caps, replaced, oldest->use};
  }

 private:
  struct Set {
    ClientCaps caps = 0;
    std::uint64_t used_ns = 0;
    std::shared_ptr<const void> use = std::make_shared<char>();
  };
  // Elicitation without modes means that forms are supported.
  static constexpr ClientCaps with_form(ClientCaps caps) {
    constexpr ClientCaps modes = cap::elicitation_form | cap::elicitation_url;
    return (caps & cap::elicitation) != 0 && (caps & modes) == 0 ? caps | cap::elicitation_form
                                                                 : caps;
  }
  // Returns the empty set if no set is a subset.
  Set largest_subset(ClientCaps wanted) const {
    Set largest{0, 0, nullptr};
    for (const Set &set : sets_) {
      const bool subset = (with_form(set.caps) & ~with_form(wanted)) == 0;
      if (subset && std::popcount(set.caps) > std::popcount(largest.caps)) largest = set;
    }
    return largest;
  }

  const std::size_t max_sets_;
  std::vector<Set> sets_;
};

}  // namespace bulkhead
