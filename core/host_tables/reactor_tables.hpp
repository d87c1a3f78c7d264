// The tables bh.host.executor/1 and bh.host.fd/1, through which plugins use the reactor. The
// plugin's ctx is the `owner` of its watches, timers, functions and pool jobs; see Reactor::held()
// and forget().
#pragma once

#include <cstdint>

#include "bulkhead/abi/host.h"
#include "reactor/reactor.hpp"

namespace bulkhead::host_tables {

// A Plugin must have `static Plugin &of(void *ctx)`, reactor() and check_call(wrong, function).
// check_call() returns BH_OK, or the reason to reject the plugin's call; `wrong` is true if the
// call's arguments are invalid. The tables have no data, so all plugins with the same Plugin class
// share them.
template <class Plugin>
struct ReactorTables {
  static std::uint64_t now_ns(void *ctx) noexcept { return Plugin::of(ctx).reactor().now_ns(); }
  static bh_status post(void *ctx, void (*fn)(void *), void *arg) noexcept {
    Plugin &plugin = Plugin::of(ctx);
    const bh_status status = plugin.check_call(fn == nullptr, "executor.post");
    return status != BH_OK ? status : plugin.reactor().post(ctx, fn, arg);
  }
  static void defer(void *ctx, void (*fn)(void *), void *arg) noexcept {
    Plugin &plugin = Plugin::of(ctx);
    if (plugin.check_call(fn == nullptr, "executor.defer") != BH_OK) return;
    plugin.reactor().defer(ctx, fn, arg);
  }
  static bh_timer timer_start(void *ctx, std::uint64_t delay_ms, void (*fn)(void *),
                              void *arg) noexcept {
    Plugin &plugin = Plugin::of(ctx);
    if (plugin.check_call(fn == nullptr, "executor.timer_start") != BH_OK) return 0;
    return plugin.reactor().timer_start(ctx, delay_ms, fn, arg);
  }
  static bh_status timer_cancel(void *ctx, bh_timer timer) noexcept {
    return Plugin::of(ctx).reactor().timer_cancel(timer);
  }
  static bh_status run_blocking(void *ctx, void (*work)(void *), void (*done)(void *),
                                void *arg) noexcept {
    Plugin &plugin = Plugin::of(ctx);
    const bool wrong = work == nullptr || done == nullptr;
    const bh_status status = plugin.check_call(wrong, "executor.run_blocking");
    return status != BH_OK ? status : plugin.reactor().run_blocking(ctx, work, done, arg);
  }

  static bh_status watch(void *ctx, std::int32_t descriptor, std::uint32_t events,
                         void (*fn)(void *, std::int32_t, std::uint32_t), void *arg,
                         bh_watch *out) noexcept {
    Plugin &plugin = Plugin::of(ctx);
    const bool wrong = descriptor < 0 || !known(events) || fn == nullptr || out == nullptr;
    const bh_status status = plugin.check_call(wrong, "fd.watch");
    return status != BH_OK ? status : plugin.reactor().watch(ctx, descriptor, events, fn, arg, out);
  }
  static bh_status modify(void *ctx, bh_watch watch, std::uint32_t events) noexcept {
    Plugin &plugin = Plugin::of(ctx);
    const bh_status status = plugin.check_call(!known(events), "fd.modify");
    return status != BH_OK ? status : plugin.reactor().modify(watch, events);
  }
  static bh_status unwatch(void *ctx, bh_watch watch) noexcept {
    return Plugin::of(ctx).reactor().unwatch(watch);
  }

  static constexpr bh_host_executor executor{
      sizeof(bh_host_executor), 0, now_ns, post, defer, timer_start, timer_cancel, run_blocking};
  static constexpr bh_host_fd fd{sizeof(bh_host_fd), 0, watch, modify, unwatch};

 private:
  static constexpr bool known(std::uint32_t events) noexcept {
    return (events & ~std::uint32_t{BH_FD_READ | BH_FD_WRITE}) == 0;
  }
};

}  // namespace bulkhead::host_tables
