// Detects changes of subscribed files with inotify watches on all folders along their paths:
// writes, renames, deletion and creation. Symbolic links on the path (within the workspace) are
// watched in their own folder, and so is the path to their target.
//
// Not detected: writes through a memory map or another hard link, and changes made by other
// machines on a network file system.
//
// Owner: the plugin. Threads: see each function. No path is resolved while holding the lock that
// read_events() takes.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "builtin-files/workspace.hpp"

namespace builtin_files {

inline constexpr std::size_t max_subscriptions = 1024;  // per workspace
// Limit per workspace for watched folders: the folders along the paths of subscribed files.
inline constexpr std::size_t max_watched_folders = 4096;

class Watcher {
 public:
  explicit Watcher(std::size_t max_folders = max_watched_folders) : max_folders_(max_folders) {}

  // Starts watching. Returns the error, or an empty string on success. After an error, add() must
  // not be called.
  std::string open(const std::vector<Workspace> &workspaces);

  // The descriptor is readable when events are pending.
  int fd() const noexcept { return inotify_.get(); }

  // Subscribes to a file of `workspace`, which need not exist. dequeue_changed() reports the file
  // by its `uri`. Repeating a URI has no effect. Returns the error, or an empty string on success.
  // Thread-safe; may block.
  std::string add(const std::string &uri, const Workspace &workspace, const std::string &path);
  // Thread-safe; may block.
  void remove(const std::string &uri);

  // Reads a limited number of pending events; if more remain, fd() stays readable. Not thread-safe.
  void read_events();
  // Returns and clears the URIs of files that may have changed, each URI once. Thread-safe.
  std::vector<std::string> dequeue_changed();
  // Returns true if follow() must be called because paths to files have changed. Thread-safe.
  bool must_follow() const;
  // Resolves the changed paths again. Thread-safe; may block.
  void follow();

 private:
  // A name in a watched folder on the path of a subscription.
  struct Step {
    int watch = -1;
    std::string name;
    bool operator==(const Step &) const = default;
  };
  struct Subscription {
    const Workspace *workspace = nullptr;
    std::string path;
    std::vector<Step> steps{};
    bool changed = false, moved = false;
  };
  struct Folder {
    const Workspace *workspace = nullptr;
    // One element per step in the folder.
    std::unordered_map<std::string, std::vector<Subscription *>> names;
  };

  std::string resolve_path(Subscription *subscription, std::vector<Step> *steps);
  std::string watch_step(Subscription *subscription, const Fd &folder, const std::string &name,
                         std::vector<Step> *steps);
  std::string keep_folder(const Workspace &workspace, int watch);
  void end_unused(int watch);
  void leave(const Subscription &subscription, const std::vector<Step> &steps);
  void on_event(int watch, std::uint32_t mask, const std::string &name);
  static void changed(Folder &folder);
  std::size_t count(const Workspace &workspace) const;
  std::size_t count_folders(const Workspace &workspace) const;

  const std::size_t max_folders_;
  Fd inotify_;
  std::mutex order_;         // held while watches are changed; may be held for a long time
  mutable std::mutex lock_;  // protects all members below; held briefly
  std::map<std::string, Subscription, std::less<>> subscriptions_;  // by URI
  std::unordered_map<int, Folder> folders_;                         // by watch
};

}  // namespace builtin_files
