// Servers that were taken out of the profile or changed: in no view, they end with their last call.
// Owner: the Router. Thread: [io]. Bound: limits.drain_ms.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "profile/profile.hpp"
#include "reactor/reactor.hpp"
#include "route/call.hpp"
#include "route/lane.hpp"
#include "route/upstreams.hpp"

namespace bulkhead {

class Draining {
 public:
  class Owner {
   public:
    virtual ~Owner() = default;
    // Calls that are not at this lane yet, and would go there.
    virtual std::vector<std::uint64_t> waiting_for(const Lane &lane) const = 0;
    // Its time is over, or it cannot finish: the call fails, and its server is notified.
    virtual void end_drained(Call &call, Lane &lane) = 0;
    // The last lane of a server has ended; from the loop, nested in nothing.
    virtual void drained() = 0;
  };
  Draining(const Limits &limits, Reactor &reactor, CallTable &calls, Owner &owner)
      : limits_(limits), reactor_(reactor), calls_(calls), owner_(owner) {}
  ~Draining();
  Draining(const Draining &) = delete;
  Draining &operator=(const Draining &) = delete;

  // They have been taken out of all views.
  void add(Upstreams::List gone);
  // A call has ended, or its lane has nothing more to do with it. Acts in a later turn, since
  // the caller may be inside a function of that lane.
  void look_later();
  // All of them end now.
  void end_all();

  bool ended() const noexcept { return ended_; }
  std::size_t size() const noexcept { return list_.size(); }
  bool has(const Upstream *upstream) const noexcept;

 private:
  bool is_busy(const Lane &lane) const;
  void look();
  void end_calls(Lane &lane);
  void start_timer();

  const Limits &limits_;
  Reactor &reactor_;
  CallTable &calls_;
  Owner &owner_;
  Upstreams::List list_;
  std::uint64_t timer_ = 0;
  bool pending_ = false;
  bool ended_ = false;
};

}  // namespace bulkhead
