// Stops a lazy server that has not been used for idle_stop_ms (a key of its definition; 0 means
// never). The idle time is checked once per idle_stop_ms, so the server may run for up to twice
// this time.
//
// Owned by the lane. Used on the reactor thread.
#pragma once

#include <cstdint>

#include "route/lane.hpp"
#include "route/lane_host.hpp"

namespace bulkhead {

class IdleStop {
 public:
  // The lane.
  class Owner {
   public:
    virtual ~Owner() = default;
    // Returns true if the server is being used at this moment.
    virtual bool busy() = 0;
    // Called when the server has been idle for long enough.
    virtual void stop_idle() = 0;
  };

  IdleStop(const Lane &lane, LaneHost &host, Owner &owner)
      : lane_(lane), host_(host), owner_(owner) {}
  ~IdleStop() { cancel(); }
  IdleStop(const IdleStop &) = delete;
  IdleStop &operator=(const IdleStop &) = delete;

  // Called when the server is used.
  void used() noexcept { last_use_ns_ = host_.reactor().now_ns(); }
  // Called when the server is ready. Its idle time begins.
  void watch();
  void cancel();

 private:
  void start_timer();
  void check();

  const Lane &lane_;
  LaneHost &host_;
  Owner &owner_;
  std::uint64_t last_use_ns_ = 0;
  std::uint64_t timer_ = 0;
};

}  // namespace bulkhead
