// The event loop of a process: file descriptors, timers, posted functions, and a thread pool of
// limited size for blocking work.
//
// Owned by the Host or the compartment. All functions must be called on the thread that calls run()
// or poll(), except post(), run_blocking(), stop() and wake(), which are thread-safe.
//
// Boost.Asio is not used by default. A call (request and response) costs about six system calls,
// and Asio's edge-triggered reactor adds one for each ready descriptor (a speculative read or an
// epoll_ctl). See bench/RESULTS.md for measurements.
#pragma once

#include <cstdint>
#include <memory>

#include "base/result.hpp"
#include "bulkhead/abi/host.h"
#include "bulkhead/cpp/callback.hpp"

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

  // Runs until stop() is called. Handlers run one after another, never nested.
  void run();
  // Runs one iteration of the event loop. Waits for events for at most timeout_ms (-1: no limit).
  void poll(int timeout_ms);
  void stop() noexcept;
  // Makes a waiting poll() return. Thread-safe and async-signal-safe.
  void wake() noexcept;

  // Sets a function that releases resources that an idle process does not need. It is called on the
  // reactor thread once per idle period. An idle period ends when a descriptor becomes ready,
  // another thread posts a function, or wake() is called; timers do not end it. The first call
  // follows after first_idle_ms of an idle period, each later call after next_idle_ms.
  static constexpr std::uint64_t first_idle_ms = 1'000;
  static constexpr std::uint64_t next_idle_ms = 30'000;
  void set_idle_handler(void (*fn)() noexcept) noexcept;

  // Returns the time of CLOCK_MONOTONIC at the start of the current iteration of the event loop.
  std::uint64_t now_ns() const noexcept;

  // These functions are documented in bh_host_executor and bh_host_fd. `owner` can be passed to
  // held() and forget(). If a posted fn will never be called, because of forget() or because the
  // reactor is destroyed, `drop` is called to free `arg`. `drop` may be null.
  bh_status post(const void *owner, Callback fn, void *arg, Callback drop = nullptr);
  void defer(const void *owner, Callback fn, void *arg);
  std::uint64_t timer_start(const void *owner, std::uint64_t delay_ms, Callback fn, void *arg);
  bh_status timer_cancel(std::uint64_t timer);
  bh_status watch(const void *owner, int fd, std::uint32_t events, FdCallback fn, void *arg,
                  std::uint64_t *out);
  bh_status modify(std::uint64_t watch, std::uint32_t events);
  bh_status unwatch(std::uint64_t watch);
  bh_status run_blocking(const void *owner, Callback work, Callback done, void *arg);
  // The same functions for typed callbacks.
  bh_status post(const void *owner, bh::Callback call) { return post(owner, call.fn, call.arg); }
  void defer(const void *owner, bh::Callback call) { defer(owner, call.fn, call.arg); }
  std::uint64_t timer_start(const void *owner, std::uint64_t delay_ms, bh::Callback call) {
    return timer_start(owner, delay_ms, call.fn, call.arg);
  }
  bh_status watch(const void *owner, int fd, std::uint32_t events, bh::FdCallback call,
                  std::uint64_t *out) {
    return watch(owner, fd, events, call.fn, call.arg, out);
  }
  bh_status run_blocking(const void *owner, const bh::BlockingWork &job) {
    return run_blocking(owner, job.work, job.done, job.arg);
  }

  // The number of watches, timers, posted functions and pool jobs of an owner. Used to report
  // resources that a stopped plugin has not released. forget() removes them, and deferred
  // functions, but not pool jobs whose work is incomplete: their `done` is still called.
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
