// Defines the state that the host's classes share. Owner: HostImpl. Must be used on the reactor
// thread, except log(), on_loop_thread() and stop_requested.
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

  // Drops messages below options.log_level.
  void log(std::int32_t level, std::string_view component, std::string_view text) const;
  bool on_loop_thread() const noexcept { return std::this_thread::get_id() == thread; }
  // May only be called while the router exists.
  const RouterParts &route() const noexcept;
  // Returns true if sessions from earlier processes can still be resumed. Once this process has run
  // for longer than the idle limit, all such sessions have expired.
  bool reopens_sessions() const noexcept;
  // Returns true if everything that was removed by reloads has finished and closed its connections.
  bool drained() const;
  // Reports a compartment whose process is unresponsive or has violated the link protocol.
  void report_unhealthy(const std::string &compartment) const;

  Profile profile;  // the profile that is in use
  HostOptions options;
  const bh_limits limits;  // the limits of the first profile; plugins keep pointers to them
  // The host's classes post functions to the reactor with this HostCore as the owner.
  std::unique_ptr<Reactor> reactor;
  std::unique_ptr<Router> router;  // null after shutdown
  std::uint64_t created_ns = 0;
  std::thread::id thread = std::this_thread::get_id();
  std::atomic<bool> stop_requested{false};
  bool started = false, stopped = false;
};

}  // namespace bulkhead
