#include "builtin-files/updates.hpp"

#include <bulkhead/cpp/plugin.hpp>

namespace builtin_files {

void Updates::start(const bh_host_tools *table, const std::vector<Workspace> &workspaces) {
  if (!BH_HAS(bh_host_tools, table, resource_updated) || table->resource_updated == nullptr) return;
  tools_ = table;
  lane_.start(table, &workspaces);
  std::string problem = watcher_.open(workspaces);
  const auto on_event = bh::fd_callback<&Updates::readable>(this);
  if (problem.empty() && host_.watch(watcher_.fd(), BH_FD_READ, on_event, &watch_) != BH_OK) {
    problem = "the gateway cannot watch for events";
  }
  if (!problem.empty())
    host_.log(BH_LOG_WARN, "subscriptions to files are unavailable: " + problem);
}

void Updates::stop() noexcept {
  host_.timer_cancel(timer_);
  host_.unwatch(watch_);
  lane_.stop();
}

// Processing is delayed, because programs often write a file in several steps.
void Updates::readable() noexcept {
  host_.modify(watch_, 0);
  schedule();
}

void Updates::schedule() noexcept {
  timer_ = host_.timer_start(coalesce_ms, bh::callback(this, [](Updates &self) {
                               self.timer_ = 0;
                               self.process_events();
                             }));
}

void Updates::process_events() noexcept {
  bh::guarded(nullptr, [&] {
    watcher_.read_events();
    return BH_OK;
  });
  notify();
  if (!watcher_.must_follow()) return wait();
  lane_.follow(bh::callback<&Updates::followed>(this));
}

void Updates::followed() noexcept {
  notify();
  if (watcher_.must_follow()) return schedule();  // follow() ran out of memory; retry later
  wait();
}

void Updates::wait() noexcept {
  host_.modify(watch_, BH_FD_READ);
}

void Updates::notify() noexcept {
  bh::guarded(nullptr, [&] {
    for (const std::string &uri : watcher_.dequeue_changed()) {
      tools_->resource_updated(host_.ctx(), bh::str(uri));
    }
    return BH_OK;
  });
}

}  // namespace builtin_files
