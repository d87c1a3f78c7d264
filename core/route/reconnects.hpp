// Counts the consecutive failures of a lane's connections, and times the next attempt.
//
// Owned by the lane. Used on the reactor thread.
#pragma once

#include <cstdint>

#include "bulkhead/cpp/callback.hpp"
#include "route/lane_host.hpp"

namespace bulkhead {

class Reconnects {
 public:
  // After this many consecutive losses or failed starts, a call no longer starts the server.
  static constexpr std::uint32_t max_failures = 3;
  // A connection that has lasted this long ends a series of failures, so the lane reconnects
  // immediately after the next loss.
  static constexpr std::uint64_t steady_ns = 10'000'000'000u;

  // `owner` identifies the object whose timer it is; see Reactor::held(). `due` is called when the
  // next attempt is due.
  Reconnects(LaneHost &host, const void *owner, bh::Callback due)
      : host_(host), owner_(owner), due_(due) {}
  ~Reconnects() { cancel(); }
  Reconnects(const Reconnects &) = delete;
  Reconnects &operator=(const Reconnects &) = delete;

  // Called when the connection has become ready.
  void ready();
  // Called when a connection that was ready was lost. The loss itself is counted by failed().
  void lost();
  void failed() noexcept { ++failures_; }
  // Ends a series of failures.
  void reset() noexcept { failures_ = 0; }
  std::uint32_t failures() const noexcept { return failures_; }
  bool exhausted() const noexcept { return failures_ >= max_failures; }

  // Schedules the next attempt with backoff and jitter. `retry_after_ms` is the delay that the
  // server requested, or 0. The attempt is not made before this delay, which is limited to
  // limits.retry_max_ms.
  void schedule(std::uint32_t retry_after_ms);
  void cancel();

 private:
  LaneHost &host_;
  const void *const owner_;
  const bh::Callback due_;
  std::uint32_t failures_ = 0;
  std::uint64_t ready_since_ns_ = 0;
  std::uint64_t timer_ = 0;
};

}  // namespace bulkhead
