// Closes the servers that a configuration reload has removed or replaced. Such a server does not
// belong to any view. Each of its lanes is closed when the lane's last call has finished. If
// limits.drain_ms has passed or the lane has lost its connection, the remaining calls fail.
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
    // Returns the calls that are not at this lane now, but are parked for it or may return to it.
    virtual std::vector<std::uint64_t> waiting_for(const Lane &lane) const = 0;
    // Fails the call and sends a cancellation to its server. Called if limits.drain_ms has passed
    // since the server was removed, or if the lane has lost its connection.
    virtual void end_drained(Call &call, Lane &lane) = 0;
    // Called after a server's last lane has been closed. Always called directly from the event
    // loop.
    virtual void drained() = 0;
  };
  Draining(const Limits &limits, Reactor &reactor, CallTable &calls, Owner &owner)
      : limits_(limits), reactor_(reactor), calls_(calls), owner_(owner) {}
  ~Draining();
  Draining(const Draining &) = delete;
  Draining &operator=(const Draining &) = delete;

  // The servers must already have been removed from all views.
  void add(Upstreams::List gone);
  // Schedules a check for idle lanes. Called when a call has finished or left its lane. The check
  // is deferred because the caller may be running inside a function of the lane.
  void look_later();
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
