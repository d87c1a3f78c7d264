#include "swap/plugin_watch.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <utility>

#include "bulkhead/cpp/callback.hpp"
#include "common/file_mark.hpp"
#include "plugin/loader.hpp"

namespace bulkhead::program {

// The files at one moment. work() runs on a pool thread.
struct PluginWatch::Look {
  struct File {
    std::string name, plugin, path;
    std::string mark;  // empty if there is no such file
  };
  PluginWatch *watch;
  std::vector<std::string> dirs;
  std::vector<File> files;

  void work() {
    for (File &file : files) {
      if (file.path.empty()) {
        LoadOptions options;
        options.dirs = dirs;
        if (const auto found = Library::check(file.plugin, options)) file.path = found->path;
      }
      struct stat status{};
      if (!file.path.empty() && ::stat(file.path.c_str(), &status) == 0) {
        file.mark = file_mark(status);
      }
    }
  }
};

PluginWatch::PluginWatch(Reactor &reactor, Swap swap) : reactor_(reactor), swap_(std::move(swap)) {}

PluginWatch::~PluginWatch() {
  watched_.clear();
  while (looking_) reactor_.poll(100);
  reactor_.forget(this);
}

void PluginWatch::follow(const Profile &profile) {
  std::vector<Watched> next;
  const auto add = [&](std::string_view group, const PluginUse &use) {
    if (!use.watch) return;
    Watched one{std::string(group) + "." + use.id, use.plugin, use.file.mark, {}, {}};
    for (const Watched &former : watched_) {
      // A file that was tried is not tried again, even if the gateway still uses an earlier one.
      if (former.name == one.name && former.plugin == one.plugin) one = former;
    }
    next.push_back(std::move(one));
  };
  for (const PluginUse &use : profile.tools) add("tools", use);
  for (const PluginUse &use : profile.policies) add("policies", use);
  watched_ = std::move(next);
  dirs_ = profile.plugin_dirs;
  wait();
}

void PluginWatch::wait() {
  if (timer_ != 0 || looking_ || watched_.empty()) return;
  timer_ = reactor_.timer_start(this, poll_ms, bh::callback(this, [](PluginWatch &self) {
                                  self.timer_ = 0;
                                  self.look();
                                }));
}

void PluginWatch::look() {
  if (swapping_ || watched_.empty()) return wait();
  auto job = std::make_unique<Look>(Look{this, dirs_, {}});
  for (const Watched &one : watched_) job->files.push_back({one.name, one.plugin, one.path, {}});
  const bh_status started = reactor_.run_blocking(
      this, bh::blocking_work(
                job.get(), [](Look &it) { it.work(); }, [](Look &it) { it.watch->looked(it); }));
  if (started != BH_OK) return wait();
  looking_ = true;
  static_cast<void>(job.release());  // looked() deletes it
}

void PluginWatch::looked(Look &look) {
  const std::unique_ptr<Look> over(&look);
  looking_ = false;
  for (const Look::File &file : look.files) {
    const auto one = std::find_if(watched_.begin(), watched_.end(), [&](const Watched &watched) {
      return watched.name == file.name && watched.plugin == file.plugin && !file.mark.empty();
    });
    if (one == watched_.end()) continue;
    one->path = file.path;
    const bool stable = std::exchange(one->seen, file.mark) == file.mark;
    if (!stable || file.mark == one->used || swapping_) continue;
    const std::string before = std::exchange(one->used, file.mark);
    swapping_ = true;
    swap_({one->name, "", false}, [this, name = one->name, before, mark = file.mark,
                                   alive = std::weak_ptr(alive_)](bh_status code) {
      if (alive.expired()) return;
      swapping_ = false;
      if (code != BH_E_LIMIT && code != BH_E_UNAVAILABLE) return wait();
      for (Watched &watched : watched_) {
        if (watched.name == name && watched.used == mark) watched.used = before;
      }
      wait();
    });
  }
  wait();
}

}  // namespace bulkhead::program
