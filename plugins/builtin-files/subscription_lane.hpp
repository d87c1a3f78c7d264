// Executes subscribe and unsubscribe requests in order of arrival, in batches on the host's thread
// pool. Only one job runs at a time, so a large number of requests cannot fill the host's job
// queue, and a blocking file system blocks only one thread. The jobs also call Watcher::follow()
// when requested.
//
// Owner: Updates. Runs on the reactor thread unless documented otherwise.
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
  static constexpr std::uint64_t batch_ms = 50;  // a job starts no more calls after this time
  static constexpr std::uint64_t retry_ms = 20;  // retry interval if the host rejects a job

  // Both arguments are borrowed and must outlive this object.
  SubscriptionLane(const bh::Host &host, Watcher *watcher) : host_(host), watcher_(watcher) {}

  // Both arguments are borrowed. Jobs read `workspaces` on pool threads, so it must remain valid
  // until the last job has finished.
  void start(const bh_host_tools *host_tools, const std::vector<Workspace> *workspaces) noexcept;
  // Fails all unfinished calls, including the calls of the current job.
  void stop() noexcept;

  enum class Kind { subscribe, unsubscribe };
  // Accepts a call, which is then completed exactly once. Cancellation is ignored, because the host
  // and the watcher must agree on which files are subscribed. Returns false if too many calls are
  // pending or stop() has been called.
  bool add(bh_call call, Kind kind, std::string uri);

  // Runs the watcher's follow() in a job, then calls `done` unless stop() has been called. Must not
  // be called again until `done` has been called.
  void follow(bh::Callback done) noexcept;

 private:
  struct Item {
    const bh_call call;
    const Kind kind;
    const std::string uri;
    // Written by the pool thread and read after the job has finished.
    std::string result{};
    bool failed = false;  // true if `result` is a JSON-RPC error
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
  std::list<Item> batch_;  // calls of the current job; used by the pool thread while the job runs
  std::size_t uri_bytes_ = 0;  // total URI size in waiting_ and batch_
  bh::Callback followed_{};
  bool following_ = false;  // the current job also calls follow()
  bool running_ = false;
  std::atomic<bool> stopped_{false};
  bh_timer timer_ = 0;
};

}  // namespace builtin_files
