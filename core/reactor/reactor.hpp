// The compartment's event loop: descriptors, timers, posted functions, and a bounded pool for
// blocking work.
//
// Owner: the Host. Thread: everything runs on the thread that calls run(), except post(),
// run_blocking() and stop(), which any thread may call.
//
// Why not io_context: a message costs about five system calls in all, and Asio's edge-triggered
// reactor adds one (a speculative read or a re-arming epoll_ctl) for each readiness it reports.
// Descriptors here stay registered, level-triggered, for as long as they are watched.
// bench/RESULTS.md has the measurement.
#pragma once

#include <cstdint>
#include <memory>

#include "base/result.hpp"
#include "bulkhead/abi/host.h"

namespace bulkhead {

using Callback = void (*)(void *arg);
using FdCallback = void (*)(void *arg, std::int32_t fd, std::uint32_t events);

class Reactor {
 public:
  static constexpr std::uint32_t max_posted = 65'536;
  static constexpr std::uint32_t max_blocking_waiting = 256;
  static constexpr std::uint32_t max_blocking_threads = 4;

  static Result<std::unique_ptr<Reactor>> create();
  ~Reactor();
  Reactor(const Reactor &) = delete;
  Reactor &operator=(const Reactor &) = delete;

  // Runs until stop(). Handlers run one after the other, never nested.
  void run();
  // Handles what is due, waiting at most timeout_ms for something (-1: for ever).
  void poll(int timeout_ms);
  void stop() noexcept;
  // Makes a poll() that sleeps return. Any thread, and async-signal-safe.
  void wake() noexcept;

  // `fn` is called on the loop's thread when no descriptor has been ready and nothing was posted
  // for first_rest_ms, and from then on once for every pause of next_rest_ms: for what a process at
  // rest has no use for. Timers do not end a pause.
  static constexpr std::uint64_t first_rest_ms = 1'000;
  static constexpr std::uint64_t next_rest_ms = 30'000;
  void on_rest(void (*fn)() noexcept) noexcept;

  // CLOCK_MONOTONIC as of the start of this turn.
  std::uint64_t now_ns() const noexcept;

  // See bh_host_executor and bh_host_fd for the contracts; `owner` groups what forget() removes.
  bh_status post(const void *owner, Callback fn, void *arg);
  void defer(const void *owner, Callback fn, void *arg);
  std::uint64_t timer_start(const void *owner, std::uint64_t delay_ms, Callback fn, void *arg);
  bh_status timer_cancel(std::uint64_t timer);
  bh_status watch(const void *owner, int fd, std::uint32_t events, FdCallback fn, void *arg,
                  std::uint64_t *out);
  bh_status modify(std::uint64_t watch, std::uint32_t events);
  bh_status unwatch(std::uint64_t watch);
  bh_status run_blocking(const void *owner, Callback work, Callback done, void *arg);

  // Counts what `owner` still holds (watches, timers, work in the pool), so that a stopped plugin's
  // leaks can be named; forget() removes them.
  struct Held {
    std::uint32_t watches = 0, timers = 0, posted = 0, blocking = 0;
  };
  Held held(const void *owner) const;
  void forget(const void *owner);

 private:
  struct State;
  explicit Reactor(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace bulkhead
