// Bounds the disk space of servers' caches (cache/SERVER of the state folder), as far as a program
// can without a quota of the kernel: each cache is measured when its server has started, while it
// runs and when it has ended. One that is too large is said so, marked, and emptied before the
// server's next start. Between two looks a server can write what the disk holds.
//
// All walking and removing is done by one thread of its own, with the first server. Internal to
// core/sandbox. Owner: a Spawner. Thread: its own, for all that is called here; `log` is called on
// any.
#pragma once

#include <pthread.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace bulkhead {

// Bytes on disk of all files below a folder; a file with several names counts as its share of them.
struct CacheSize {
  std::uint64_t bytes = 0;
  bool whole = true;  // false: more files or folders in each other than are looked at
};
inline constexpr std::uint64_t most_cache_entries = 1'000'000;
inline constexpr int most_cache_depth = 64;
// Follows no link. Stops when `stop` becomes true.
CacheSize measure_folder(const std::string &path, const std::atomic<bool> &stop);
// Removes a folder with all that is in it, however deep, whatever its permissions are. Follows no
// link. False: something is left.
bool remove_folder(const std::string &path, const std::atomic<bool> &stop);

class CacheBounds {
 public:
  struct Options {
    std::string folder;  // that has the caches; it may not exist yet
    std::function<void(std::int32_t level, std::string_view text)> log;
    // From a start or an end to the look, and from one look at a running server to the next.
    std::chrono::milliseconds settle{5'000}, interval{600'000};
  };

  explicit CacheBounds(Options options) : options_(std::move(options)) {}
  ~CacheBounds();
  CacheBounds(const CacheBounds &) = delete;
  CacheBounds &operator=(const CacheBounds &) = delete;

  // Before a process of this server starts: where its cache was too large, and no other process of
  // it runs, puts it away to be removed.
  void make_room(const std::string &server);
  // bytes: the bound; 0: none.
  void started(const std::string &server, std::uint64_t bytes);
  void ended(const std::string &server);

 private:
  using Clock = std::chrono::steady_clock;
  struct Watched {
    std::uint64_t bytes = 0;
    std::uint32_t running = 0;
    Clock::time_point due;
  };

  void work();
  bool start_thread();
  void find_leftovers();
  void measure(std::unique_lock<std::mutex> &lock, const std::string &server);
  std::string mark_of(const std::string &server) const;

  const Options options_;
  std::atomic<bool> ending_{false};
  bool has_thread_ = false;
  pthread_t thread_{};
  std::uint64_t put_away_ = 0;
  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::map<std::string, Watched> watched_;
  std::vector<std::string> trash_;  // folders to be removed
};

}  // namespace bulkhead
