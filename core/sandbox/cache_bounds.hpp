// CacheBounds limits the disk space that server caches (cache/SERVER in the state folder) use,
// without a kernel quota. It measures a cache after the server starts, at intervals while the
// server runs, and after the server exits. If a cache exceeds its limit, CacheBounds logs a
// warning, marks the cache with a file, and empties it before the server's next start. Between two
// measurements, a server can still fill the disk.
//
// A private thread measures and removes caches. The first call of started() creates it.
// Internal to core/sandbox. Owner: a Spawner. The public functions must be called on one thread.
// `log` is called on that thread and on the private thread.
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

// The disk usage of a folder and its subfolders. If a file has n hard links, each link counts as
// 1/n of its size.
struct CacheSize {
  std::uint64_t bytes = 0;
  bool complete = true;  // false if the measurement reached one of the limits below
};
inline constexpr std::uint64_t most_cache_entries = 1'000'000;
inline constexpr int most_cache_depth = 64;
// Measures a folder without following symbolic links. Folders that cannot be opened count as empty.
// Returns early, with a partial result, if `stop` becomes true.
CacheSize measure_folder(const std::string &path, const std::atomic<bool> &stop);
// Limits of one removal: removed or moved entries, and reads of the folder. A process that still
// writes to the folder could otherwise prolong the removal forever.
struct RemovalLimits {
  std::uint64_t entries = 4 * most_cache_entries, rounds = 100'000;
};
// Removes a folder and its contents, whatever their depth and permissions, without following
// symbolic links. Returns false if it could not remove everything.
bool remove_folder(const std::string &path, const std::atomic<bool> &stop,
                   RemovalLimits limits = {});

class CacheBounds {
 public:
  struct Options {
    std::string folder;  // the parent folder of all caches; need not exist
    std::function<void(std::int32_t level, std::string_view text)> log;
    // `settle` is the delay between a server's start or exit and the measurement. `interval` is the
    // time between two measurements of a running server.
    std::chrono::milliseconds settle{5'000}, interval{600'000};
  };

  explicit CacheBounds(Options options) : options_(std::move(options)) {}
  ~CacheBounds();
  CacheBounds(const CacheBounds &) = delete;
  CacheBounds &operator=(const CacheBounds &) = delete;

  // Must be called before a process of this server is started. If the server's cache is marked as
  // too large and the server has no running process, the cache is moved aside for removal.
  void make_room(const std::string &server);
  // `bytes` is the cache limit; 0 means no limit.
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
  void mark(const std::string &server, const CacheSize &size, std::uint64_t bound);
  std::string mark_of(const std::string &server) const;

  const Options options_;
  std::atomic<bool> ending_{false};
  bool has_thread_ = false;
  pthread_t thread_{};
  std::uint64_t moved_aside_ = 0;
  std::mutex mutex_;  // guards the members below
  std::condition_variable changed_;
  std::map<std::string, Watched> watched_;
  std::vector<std::string> trash_;  // folders to remove
  std::string measuring_;           // the server whose cache is being measured without the lock
};

}  // namespace bulkhead
