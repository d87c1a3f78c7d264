// Notifies the host when subscribed files change. Changes are coalesced: inotify events are read at
// most once per coalesce_ms.
//
// Owner: the plugin. Runs on the reactor thread.
#pragma once

#include <bulkhead/abi/ext/tools.h>
#include <bulkhead/cpp/host.hpp>

#include <cstdint>
#include <string>
#include <vector>

#include "builtin-files/subscription_lane.hpp"
#include "builtin-files/watcher.hpp"

namespace builtin_files {

class Updates {
 public:
  static constexpr std::uint64_t coalesce_ms = 100;

  explicit Updates(const bh::Host &host) : host_(host), lane_(host, &watcher_) {}

  // Starts watching. If the host's table lacks resource_updated or inotify is unavailable,
  // subscriptions are disabled, and offered() returns false.
  void start(const bh_host_tools *table, const std::vector<Workspace> &workspaces);
  void stop() noexcept;
  bool offered() const noexcept { return watch_ != 0; }

  // All subscribe and unsubscribe requests must go through this lane.
  SubscriptionLane &lane() noexcept { return lane_; }

 private:
  void readable() noexcept;
  void process_events() noexcept;
  void followed() noexcept;
  void notify() noexcept;
  void schedule() noexcept;
  void wait() noexcept;

  const bh::Host &host_;
  const bh_host_tools *tools_ = nullptr;
  Watcher watcher_;
  SubscriptionLane lane_;
  bh_watch watch_ = 0;
  bh_timer timer_ = 0;
};

}  // namespace builtin_files
