#include "builtin-files/updates.hpp"

#include <bulkhead/cpp/plugin.hpp>

namespace builtin_files {

void Updates::start(const bh_host_tools *tools, const std::vector<Workspace> &workspaces) {
  if (!BH_HAS(bh_host_tools, tools, resource_updated) || tools->resource_updated == nullptr) return;
  tools_ = tools;
  lane_.start(tools, &workspaces);
  std::string problem = watcher_.open(workspaces);
  const auto on_event = [](void *arg, std::int32_t, std::uint32_t) {
    static_cast<Updates *>(arg)->readable();
  };
  if (problem.empty() && host_.watch(watcher_.fd(), BH_FD_READ, on_event, this, &watch_) != BH_OK) {
    problem = "the host's limit for descriptors is reached";
  }
  if (!problem.empty())
    host_.log(BH_LOG_WARN, "subscriptions to files are unavailable: " + problem);
}

void Updates::stop() noexcept {
  host_.timer_cancel(timer_);
  host_.unwatch(watch_);
  lane_.stop();
}

// Delayed, since a file that is being written changes repeatedly.
void Updates::readable() noexcept {
  host_.modify(watch_, 0);
  schedule();
}

void Updates::schedule() noexcept {
  const auto run_now = [](void *arg) {
    auto &self = *static_cast<Updates *>(arg);
    self.timer_ = 0;
    self.process_events();
  };
  timer_ = host_.timer_start(coalesce_ms, run_now, this);
}

void Updates::process_events() noexcept {
  bh::guarded(nullptr, [&] {
    watcher_.read_events();
    return BH_OK;
  });
  notify();
  if (!watcher_.must_follow()) return wait();
  lane_.follow([](void *arg) { static_cast<Updates *>(arg)->followed(); }, this);
}

void Updates::followed() noexcept {
  notify();
  if (watcher_.must_follow()) return schedule();  // out of memory
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
