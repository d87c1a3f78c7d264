// State shared by the host's classes. Owner: HostImpl. Thread: the reactor's, except log() and
// stop_requested.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string_view>
#include <thread>

#include "bulkhead/abi/host.h"
#include "host_options.hpp"
#include "profile/profile.hpp"
#include "reactor/reactor.hpp"
#include "route/parts.hpp"

namespace bulkhead {

class Router;

struct HostCore {
  HostCore(Profile first_profile, HostOptions host_options);

  // Filtered by options.log_level.
  void log(std::int32_t level, std::string_view component, std::string_view text) const;
  bool on_loop_thread() const noexcept { return std::this_thread::get_id() == thread; }
  // While there is a router.
  const RouterParts &route() const noexcept;
  // A session that was idle for longer than the process has run would have ended anyway.
  bool reopens_sessions() const noexcept;
  // Nothing that a reload has removed is left.
  bool drained() const;
  // The process of that compartment is unresponsive or violates the link's protocol.
  void report_unhealthy(const std::string &compartment) const;

  Profile profile;  // the current profile
  HostOptions options;
  const bh_limits limits;  // of the first profile: plugins keep pointers to them
  // Functions that the host's classes post belong to this object in the reactor.
  std::unique_ptr<Reactor> reactor;
  std::unique_ptr<Router> router;  // null after the shutdown
  std::uint64_t created_ns = 0;
  std::thread::id thread = std::this_thread::get_id();
  std::atomic<bool> stop_requested{false};
  bool started = false, stopped = false;
};

}  // namespace bulkhead
