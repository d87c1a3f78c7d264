#include "sandbox/cache_bounds.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <utility>

#include "base/owned_fd.hpp"
#include "bulkhead/abi/host.h"

namespace bulkhead {
namespace {

// Name prefixes of the mark files and of the folders to be removed. They cannot collide with a
// cache because a server whose name starts with a dot has no cache.
constexpr std::string_view mark_name = ".over-", trash_name = ".old-";
constexpr int folder_flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

struct CloseFolder {
  void operator()(DIR *folder) const { ::closedir(folder); }
};
using Folder = std::unique_ptr<DIR, CloseFolder>;

Folder open_folder(int at, const char *name) {
  OwnedFd fd(::openat(at, name, folder_flags));
  Folder folder(fd ? ::fdopendir(fd.get()) : nullptr);
  if (folder) static_cast<void>(fd.release());
  return folder;
}

const dirent *next_entry(const Folder &folder) {
  for (;;) {
    // NOLINTNEXTLINE(concurrency-mt-unsafe): each stream is used by one thread only
    const dirent *entry = ::readdir(folder.get());
    if (entry == nullptr) return nullptr;
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") return entry;
  }
}

std::string in_megabytes(std::uint64_t bytes) {
  return std::to_string(bytes >> 20) + " MiB";
}

// Makes a folder accessible to its owner so that it can be emptied. Does not follow symbolic links.
void open_up(int at, const char *name) {
  static_cast<void>(::fchmodat(at, name, 0700, AT_SYMLINK_NOFOLLOW) == 0);
}

// Removes the files in the folder `name` and moves its subfolders up to `top`. Removal therefore
// never descends more than one level.
void flatten(int top, const std::string &name, std::uint64_t *number, std::uint64_t *left,
             const std::atomic<bool> &stop) {
  open_up(top, name.c_str());
  const Folder folder = open_folder(top, name.c_str());
  if (!folder) return;
  const int at = ::dirfd(folder.get());
  for (const dirent *entry; !stop && *left > 0 && (entry = next_entry(folder)) != nullptr;) {
    --*left;
    if (::unlinkat(at, entry->d_name, 0) == 0) continue;
    if (errno != EISDIR && errno != EPERM) continue;
    open_up(at, entry->d_name);
    ::renameat(at, entry->d_name, top, (".." + std::to_string(++*number)).c_str());
  }
}

}  // namespace

CacheSize measure_folder(const std::string &path, const std::atomic<bool> &stop) {
  CacheSize size;
  std::uint64_t entries = 0;
  std::vector<Folder> open;
  open.push_back(open_folder(AT_FDCWD, path.c_str()));
  if (!open.back()) return size;
  while (!open.empty() && !stop) {
    const dirent *entry = next_entry(open.back());
    if (entry == nullptr) {
      open.pop_back();
      continue;
    }
    const int at = ::dirfd(open.back().get());
    struct stat about{};
    if (++entries > most_cache_entries) {
      size.complete = false;
      break;
    }
    if (::fstatat(at, entry->d_name, &about, AT_SYMLINK_NOFOLLOW) != 0) continue;
    const auto names = S_ISDIR(about.st_mode) ? 1 : std::max<nlink_t>(about.st_nlink, 1);
    size.bytes += static_cast<std::uint64_t>(about.st_blocks) * 512 / names;
    if (!S_ISDIR(about.st_mode)) continue;
    if (open.size() >= static_cast<std::size_t>(most_cache_depth)) {
      size.complete = false;
    } else if (Folder below = open_folder(at, entry->d_name)) {
      open.push_back(std::move(below));
    }
  }
  return size;
}

bool remove_folder(const std::string &path, const std::atomic<bool> &stop, RemovalLimits limits) {
  open_up(AT_FDCWD, path.c_str());
  std::uint64_t number = 0;
  bool progress = true;
  while (progress && !stop && limits.rounds-- > 0) {
    if (::rmdir(path.c_str()) == 0 || errno == ENOENT) return true;
    progress = false;
    const Folder top = open_folder(AT_FDCWD, path.c_str());
    if (!top) return false;
    const int at = ::dirfd(top.get());
    for (const dirent *entry; !stop && (entry = next_entry(top)) != nullptr;) {
      if (limits.entries == 0) return false;
      --limits.entries;
      const std::string name = entry->d_name;
      if (::unlinkat(at, name.c_str(), 0) != 0) flatten(at, name, &number, &limits.entries, stop);
      if (::unlinkat(at, name.c_str(), AT_REMOVEDIR) == 0 || errno == ENOENT) progress = true;
    }
  }
  return false;
}

CacheBounds::~CacheBounds() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  if (has_thread_) ::pthread_join(thread_, nullptr);
}

std::string CacheBounds::mark_of(const std::string &server) const {
  return options_.folder + "/" + std::string(mark_name) + server;
}

void CacheBounds::make_room(const std::string &server) {
  const std::string mark = mark_of(server);
  if (::access(mark.c_str(), F_OK) != 0) return;
  const std::lock_guard lock(mutex_);
  const auto at = watched_.find(server);
  if (at != watched_.end() && at->second.running != 0)
    return;  // the server still has a running process
  const std::string away = options_.folder + "/" + std::string(trash_name) +
                           std::to_string(::getpid()) + "-" + std::to_string(++moved_aside_);
  const std::string cache = options_.folder + "/" + server;
  if (measuring_ == server) measuring_.clear();
  if (::rename(cache.c_str(), away.c_str()) == 0) {
    trash_.push_back(away);
    options_.log(BH_LOG_INFO,
                 "server \"" + server + "\": its cache was too large and is being emptied");
  } else if (errno != ENOENT) {
    return options_.log(
        BH_LOG_WARN,
        "server \"" + server + "\": its cache exceeds its limit and cannot be moved aside");
  }
  ::unlink(mark.c_str());
}

void CacheBounds::started(const std::string &server, std::uint64_t bytes) {
  if (!start_thread()) return;
  {
    const std::lock_guard lock(mutex_);
    Watched &watched = watched_[server];
    watched.bytes = bytes;
    ++watched.running;
    watched.due = Clock::now() + options_.settle;
  }
  changed_.notify_all();
}

void CacheBounds::ended(const std::string &server) {
  {
    const std::lock_guard lock(mutex_);
    const auto at = watched_.find(server);
    if (at == watched_.end() || at->second.running == 0) return;
    --at->second.running;
    at->second.due = Clock::now() + options_.settle;
  }
  changed_.notify_all();
}

// The new thread blocks all signals, so that signals are delivered only to other threads.
bool CacheBounds::start_thread() {
  if (has_thread_) return true;
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  has_thread_ = ::pthread_create(
                    &thread_, nullptr,
                    [](void *self) -> void * {
                      static_cast<CacheBounds *>(self)->work();
                      return nullptr;
                    },
                    this) == 0;
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return has_thread_;
}

// Queues for removal any folders that an earlier process moved aside but did not remove.
void CacheBounds::find_leftovers() {
  std::error_code error;
  // Not a range-for, which throws if an entry cannot be read.
  for (auto at = std::filesystem::directory_iterator(options_.folder, error);
       !error && at != std::filesystem::directory_iterator(); at.increment(error)) {
    const auto &entry = *at;
    const std::string name = entry.path().filename();
    if (!name.starts_with(trash_name)) continue;
    const std::lock_guard lock(mutex_);
    if (std::find(trash_.begin(), trash_.end(), entry.path()) == trash_.end()) {
      trash_.push_back(entry.path());
    }
  }
}

void CacheBounds::work() {
  find_leftovers();
  std::unique_lock lock(mutex_);
  while (!ending_) {
    if (!trash_.empty()) {
      const std::string path = std::move(trash_.back());
      trash_.pop_back();
      lock.unlock();
      if (!remove_folder(path, ending_) && !ending_) {
        options_.log(BH_LOG_WARN, "cannot remove the old cache " + path +
                                      " completely; a server of another gateway may still be "
                                      "using it; the rest is removed the next time a gateway "
                                      "starts a server with a cache limit");
      }
      lock.lock();
      continue;
    }
    const auto next =
        std::min_element(watched_.begin(), watched_.end(),
                         [](const auto &a, const auto &b) { return a.second.due < b.second.due; });
    if (next == watched_.end()) {
      changed_.wait(lock);
    } else if (next->second.due > Clock::now()) {
      const Clock::time_point due = next->second.due;
      changed_.wait_until(lock, due);
    } else {
      measure(lock, std::string(next->first));
    }
  }
}

void CacheBounds::measure(std::unique_lock<std::mutex> &lock, const std::string &server) {
  Watched &watched = watched_[server];
  const std::uint64_t bound = watched.bytes;
  watched.due = Clock::now() + options_.interval;
  if (watched.running == 0) watched_.erase(server);
  if (bound == 0) return;
  measuring_ = server;
  lock.unlock();
  const CacheSize size = measure_folder(options_.folder + "/" + server, ending_);
  lock.lock();
  // If make_room() moved the cache aside during the measurement, it also cleared measuring_, and
  // the result is obsolete.
  if (!ending_ && measuring_ == server) mark(server, size, bound);
  measuring_.clear();
}

void CacheBounds::mark(const std::string &server, const CacheSize &size, std::uint64_t bound) {
  const std::string mark = mark_of(server);
  if (size.bytes <= bound && size.complete) {
    ::unlink(mark.c_str());  // the cache is within its limit again
    return;
  }
  if (::access(mark.c_str(), F_OK) == 0) return;
  const OwnedFd made(::open(mark.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  const std::string much =
      size.complete
          ? in_megabytes(size.bytes) + ", more than its cache_bytes (" + in_megabytes(bound) + ")"
          : "too many files or nested folders to count";
  options_.log(BH_LOG_WARN, "server \"" + server + "\": its cache has " + much +
                                "; the cache is emptied before the server's next start");
}

}  // namespace bulkhead
