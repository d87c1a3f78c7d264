// The C++ interface to a plugin's bh_host. The functions that use the reactor must not be called
// unless has_reactor() is true.
#pragma once

#include <cstdint>
#include <string_view>

#include "../abi/host.h"
#include "basics.hpp"
#include "callback.hpp"

namespace bh {

class Host {
 public:
  explicit Host(const bh_host *host) noexcept
      : host_(host),
        executor_(ext<bh_host_executor>(BH_EXT_HOST_EXECUTOR)),
        fd_(ext<bh_host_fd>(BH_EXT_HOST_FD)) {}

  // Returns the host's table for an extension, or null. Looks it up on each call.
  template <class T>
  const T *ext(const char *id) const noexcept {
    return static_cast<const T *>(host_->get_ext(host_->ctx, id));
  }

  void *ctx() const noexcept { return host_->ctx; }
  const bh_host *raw() const noexcept { return host_; }

  void log(std::int32_t level, std::string_view message) const noexcept {
    host_->log(host_->ctx, level, str(message));
  }
  bool log_enabled(std::int32_t level) const noexcept {
    return host_->log_enabled(host_->ctx, level) != 0;
  }

  // Returns true if the host provides the reactor. A plugin that needs the reactor should check
  // this in configure().
  bool has_reactor() const noexcept { return executor_ != nullptr && fd_ != nullptr; }

  std::uint64_t now_ns() const noexcept { return executor_->now_ns(ctx()); }
  bh_status post(void (*fn)(void *), void *arg) const noexcept {
    return executor_->post(ctx(), fn, arg);
  }
  bh_status post(Callback call) const noexcept { return post(call.fn, call.arg); }
  void defer(void (*fn)(void *), void *arg) const noexcept { executor_->defer(ctx(), fn, arg); }
  void defer(Callback call) const noexcept { defer(call.fn, call.arg); }
  bh_timer timer_start(std::uint64_t delay_ms, void (*fn)(void *), void *arg) const noexcept {
    return executor_->timer_start(ctx(), delay_ms, fn, arg);
  }
  bh_timer timer_start(std::uint64_t delay_ms, Callback call) const noexcept {
    return timer_start(delay_ms, call.fn, call.arg);
  }
  // Cancels the timer unless the handle is 0. Sets the handle to 0.
  void timer_cancel(bh_timer &timer) const noexcept {
    if (timer != 0) executor_->timer_cancel(ctx(), timer);
    timer = 0;
  }
  bh_status run_blocking(void (*work)(void *), void (*done)(void *), void *arg) const noexcept {
    return executor_->run_blocking(ctx(), work, done, arg);
  }
  bh_status run_blocking(const BlockingWork &job) const noexcept {
    return run_blocking(job.work, job.done, job.arg);
  }

  bh_status watch(int fd, std::uint32_t events, void (*fn)(void *, std::int32_t, std::uint32_t),
                  void *arg, bh_watch *out) const noexcept {
    return fd_->watch(ctx(), fd, events, fn, arg, out);
  }
  bh_status watch(int fd, std::uint32_t events, FdCallback call, bh_watch *out) const noexcept {
    return watch(fd, events, call.fn, call.arg, out);
  }
  void modify(bh_watch watch, std::uint32_t events) const noexcept {
    fd_->modify(ctx(), watch, events);
  }
  // Removes the watch unless the handle is 0. Sets the handle to 0.
  void unwatch(bh_watch &watch) const noexcept {
    if (watch != 0) fd_->unwatch(ctx(), watch);
    watch = 0;
  }

 private:
  const bh_host *host_;
  const bh_host_executor *executor_;
  const bh_host_fd *fd_;
};

}  // namespace bh
