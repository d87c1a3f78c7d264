// Executes resources/subscribe and resources/unsubscribe in order of arrival, in batches, with at
// most one job of the host's pool. So the order is kept, many subscriptions do not fill the host's
// queue, and a blocking file system blocks only one thread. Watcher::follow() runs here as well.
//
// Owner: Updates. Thread: the reactor's, unless documented otherwise.
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
  static constexpr std::size_t max_calls = 65'536;         // not finished
  static constexpr std::size_t max_uri_bytes = 64u << 20;  // of all their URIs
  static constexpr std::size_t max_batch = 256;            // limit of calls per job
  static constexpr std::uint64_t batch_ms = 50;  // time after which a job begins no further call
  static constexpr std::uint64_t retry_ms = 20;  // retry interval if the host rejects a job

  // Both are borrowed and must outlive the object.
  SubscriptionLane(const bh::Host &host, Watcher *watcher) : host_(host), watcher_(watcher) {}

  // Both are borrowed; threads read `workspaces` until the last job has ended.
  void start(const bh_host_tools *host_tools, const std::vector<Workspace> *workspaces) noexcept;
  // Fails all unfinished calls, including those of a running job.
  void stop() noexcept;

  enum class Kind { subscribe, unsubscribe };
  // True: the call is completed later, exactly once. It is executed even if the caller no longer
  // waits, so that the host's subscription state stays correct. False: too many calls are waiting.
  bool add(bh_call call, Kind kind, std::string uri);

  // Calls the watcher's follow(), then `done`, unless stop() was called before. One at a time.
  void follow(bh::Callback done) noexcept;

 private:
  struct Item {
    const bh_call call;
    const Kind kind;
    const std::string uri;
    std::string result{};  // written by the thread, read after the job; also the next two
    bool failed = false;   // result is a JSON-RPC error
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
  std::list<Item> batch_;      // calls of the running job, used by its thread
  std::size_t uri_bytes_ = 0;  // of waiting_ and batch_
  bh::Callback followed_{};
  bool following_ = false;  // the job also calls follow()
  bool running_ = false;
  std::atomic<bool> stopped_{false};
  bh_timer timer_ = 0;
};

}  // namespace builtin_files
