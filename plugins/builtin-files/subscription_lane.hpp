// Executes resources/subscribe and resources/unsubscribe in order of arrival, in batches. At most
// one job runs in the host's pool, so many subscriptions cannot fill the host's queue, and a
// blocking file system blocks only one thread. Watcher::follow() also runs in these jobs.
//
// Owner: Updates. Runs on the reactor thread, unless documented otherwise.
#pragma once

#include <bulkhead/abi/ext/tools.h>
#include <bulkhead/cpp/host.hpp>

#include <atomic>
#include <cstdint>
#include <list>
#include <string>
#include <vector>

#include "builtin-files/watcher.hpp"

namespace builtin_files {

class SubscriptionLane {
 public:
  static constexpr std::size_t max_calls = 65'536;         // unfinished calls
  static constexpr std::size_t max_uri_bytes = 64u << 20;  // URIs of all unfinished calls
  static constexpr std::size_t max_batch = 256;            // calls per job
  static constexpr std::uint64_t batch_ms = 50;  // after this time, a job stops executing calls
  static constexpr std::uint64_t retry_ms = 20;  // retry interval if the host rejects a job

  // The arguments are borrowed and must outlive the object.
  SubscriptionLane(const bh::Host &host, Watcher *watcher) : host_(host), watcher_(watcher) {}

  // The arguments are borrowed. Threads read `workspaces` until the last job has ended.
  void start(const bh_host_tools *host_tools, const std::vector<Workspace> *workspaces) noexcept;
  // Fails all unfinished calls, including those of the current job.
  void stop() noexcept;

  enum class Kind { subscribe, unsubscribe };
  // Returns true if the call was accepted. An accepted call is completed exactly once. It is
  // executed even if it is cancelled, so that the host's subscription state stays correct. Returns
  // false if too many calls are pending.
  bool add(bh_call call, Kind kind, std::string uri);

  // Calls the watcher's follow(), then `done`, unless stop() was called before. Must not be called
  // while a previous call is in progress.
  void follow(bh::Callback done) noexcept;

 private:
  struct Item {
    const bh_call call;
    const Kind kind;
    const std::string uri;
    // These three members are written by the job's thread and read after the job has ended.
    std::string result{};
    bool failed = false;  // result is a JSON-RPC error
    bool done = false;
  };

  void next() noexcept;
  void run() noexcept;
  void perform(Item *item);
  void ran() noexcept;
  void fail(bh_call call, const char *error) noexcept;
  void complete(Item *item) noexcept;

  const bh::Host &host_;
  Watcher *const watcher_;
  const bh_host_tools *tools_ = nullptr;
  const std::vector<Workspace> *workspaces_ = nullptr;
  std::list<Item> waiting_;
  std::list<Item> batch_;      // calls of the current job, used by its thread
  std::size_t uri_bytes_ = 0;  // total size of the URIs in waiting_ and batch_
  bh::Callback followed_{};
  bool following_ = false;  // the job also calls follow()
  bool running_ = false;
  std::atomic<bool> stopped_{false};
  bh_timer timer_ = 0;
};

}  // namespace builtin_files
