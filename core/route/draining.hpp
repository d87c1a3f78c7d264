// Servers that a reload has removed or changed. They are not in any view, and end after their last
// call.
//
// Owner: the Router. Runs on the reactor thread. Limit: limits.drain_ms.
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
    // Returns the parked calls that have not yet reached this lane.
    virtual std::vector<std::uint64_t> waiting_for(const Lane &lane) const = 0;
    // Fails a call that has exceeded limits.drain_ms or cannot finish, and notifies its server.
    virtual void end_drained(Call &call, Lane &lane) = 0;
    // Called from the event loop when a server's last lane has ended, never from inside another
    // call.
    virtual void drained() = 0;
  };
  Draining(const Limits &limits, Reactor &reactor, CallTable &calls, Owner &owner)
      : limits_(limits), reactor_(reactor), calls_(calls), owner_(owner) {}
  ~Draining();
  Draining(const Draining &) = delete;
  Draining &operator=(const Draining &) = delete;

  // Adds servers that have been removed from all views.
  void add(Upstreams::List gone);
  // Called when a call has ended or left its lane. The check runs in a later turn because the
  // caller may be inside a function of that lane.
  void look_later();
  // Ends all draining servers now.
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
