// Detects when subscribed files are written, renamed, deleted or created. Uses inotify watches on
// all folders along the path of each file. If the path contains symbolic links, the folders of the
// links and the paths to the link targets are watched as well.
//
// Changes through memory maps, through other hard links, or by other machines on a network file
// system are not detected.
//
// Owner: the plugin. Functions that are not documented as thread-safe run on the reactor thread.
// read_events() takes a lock that is never held while a path is resolved, so read_events() does not
// wait for the file system.
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
// Maximum number of watched folders per workspace, including parent folders and folders of links.
inline constexpr std::size_t max_watched_folders = 4096;

class Watcher {
 public:
  explicit Watcher(std::size_t max_folders = max_watched_folders) : max_folders_(max_folders) {}

  // Starts watching. Returns the error, or an empty string on success. After an error, add() must
  // not be called.
  std::string open(const std::vector<Workspace> &workspaces);

  // Returns the inotify descriptor, which is readable when events are pending.
  int fd() const noexcept { return inotify_.get(); }

  // Subscribes to a file in `workspace`. The file need not exist. dequeue_changed() reports the
  // file by its `uri`. Has no effect if the URI is already subscribed. Returns the error, or an
  // empty string on success. Thread-safe; may block.
  std::string add(const std::string &uri, const Workspace &workspace, const std::string &path);
  // Thread-safe; may block.
  void remove(const std::string &uri);

  // Processes a limited number of inotify events. If events remain, fd() stays readable. Not
  // thread-safe.
  void read_events();
  // Returns the URIs of files that may have changed since the last call. Thread-safe.
  std::vector<std::string> dequeue_changed();
  // Returns true if folders or links on a watched path have changed, so follow() must be called.
  // Thread-safe.
  bool must_follow() const;
  // Resolves changed paths again and updates their watches. Thread-safe; may block.
  void follow();

 private:
  // A component of a subscribed path: a name in a watched folder.
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
    // The subscriptions that watch each name in this folder. A subscription is listed once for each
    // of its steps.
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
  std::mutex order_;         // serializes changes of watches; may be held while paths are resolved
  mutable std::mutex lock_;  // protects all members below; held only briefly
  std::map<std::string, Subscription, std::less<>> subscriptions_;  // keyed by URI
  std::unordered_map<int, Folder> folders_;  // keyed by inotify watch descriptor
};

}  // namespace builtin_files
