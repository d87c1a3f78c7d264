// The calls of resources/subscribe and resources/unsubscribe: they are done in the order in which
// they came, many by one job of the host's pool, and there is never a second such job. So none of
// them overtakes another, a session's thousand of them fill no queue of the host, and a file system
// that hangs holds one thread. The watcher's own looking for ways goes through here as well.
//
// Owner: Updates. Thread: the reactor's, where nothing else is said.
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
  static constexpr std::size_t max_calls = 65'536;         // that are not done
  static constexpr std::size_t max_uri_bytes = 64u << 20;  // of all their URIs
  static constexpr std::size_t max_batch = 256;            // calls of one job,
  static constexpr std::uint64_t batch_ms = 50;            // which begins none after that
  static constexpr std::uint64_t retry_ms = 20;            // when the host takes no job now

  // Both are borrowed and outlive it.
  SubscriptionLane(const bh::Host &host, Watcher *watcher) : host_(host), watcher_(watcher) {}

  // Both are borrowed; threads read `workspaces` until the host has ended the last job.
  void start(const bh_host_tools *host_tools, const std::vector<Workspace> *workspaces) noexcept;
  // Calls that are not done fail, also those that a thread is at.
  void stop() noexcept;

  enum class Kind { subscribe, unsubscribe };
  // True: the call is completed later, once, also if nobody waits for it any more: what it is about
  // is done all the same, so that the host's view of what is subscribed to stays right. False: too
  // many are waiting.
  bool add(bh_call call, Kind kind, std::string uri);

  // Has the watcher follow(), then calls done(arg), unless stop() was called before. One at a time.
  void follow(void (*done)(void *), void *arg) noexcept;

 private:
  struct Item {
    const bh_call call;
    const Kind kind;
    const std::string uri;
    std::string result{};  // written by the thread, read when the job is done; as the next two
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
  std::list<Item> batch_;      // of the job; while it runs its thread uses them
  std::size_t uri_bytes_ = 0;  // of both
  void (*followed_)(void *) = nullptr;
  void *followed_arg_ = nullptr;
  bool following_ = false;  // the job does that, too
  bool running_ = false;
  std::atomic<bool> stopped_{false};
  bh_timer timer_ = 0;
};

}  // namespace builtin_files
