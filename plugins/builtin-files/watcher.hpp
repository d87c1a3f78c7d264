// Detects changes of subscribed files with inotify watches on all folders along their paths, so
// that replacing by rename, deleting and creating a file are detected as well as writing. Symbolic
// links on the path (within the workspace) are watched in their own folder, and so is the path to
// their target.
//
// Not detected: writes through a memory map or another hard link, and changes made by other
// machines on a network file system.
//
// Owner: the plugin. Thread: as documented per function. No path is resolved while holding the lock
// that read_events() takes.
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

inline constexpr std::size_t max_subscriptions = 1024;    // per workspace
inline constexpr std::size_t max_watched_folders = 4096;  // per workspace, along the paths of
                                                          // subscribed files

class Watcher {
 public:
  explicit Watcher(std::size_t max_folders = max_watched_folders) : max_folders_(max_folders) {}

  // Starts watching. Returns the error; empty: none. After an error, add() must not be called.
  std::string open(const std::vector<Workspace> &workspaces);

  // Readable when there are events.
  int fd() const noexcept { return inotify_.get(); }

  // Subscribes to a file of that workspace, which need not exist; `uri` identifies it in
  // dequeue_changed(). Repeating a URI has no effect. Returns the error; empty: none. Thread: any;
  // may block.
  std::string add(const std::string &uri, const Workspace &workspace, const std::string &path);
  // Thread: any; may block.
  void remove(const std::string &uri);

  // Reads pending events; after a limited amount fd() stays readable. Thread: one at a time.
  void read_events();
  // Returns and clears the URIs of files that may have changed, each once. Thread: any.
  std::vector<std::string> dequeue_changed();
  // True if the paths to some files have changed. Thread: any.
  bool must_follow() const;
  // Resolves those paths again. Thread: any; may block.
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
  std::mutex order_;         // held while watches are changed; may be held for long
  mutable std::mutex lock_;  // protects all members below; held briefly
  std::map<std::string, Subscription, std::less<>> subscriptions_;  // by URI
  std::unordered_map<int, Folder> folders_;                         // by watch
};

}  // namespace builtin_files
