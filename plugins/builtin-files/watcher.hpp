// Changes of files that somebody wants to know of: inotify on the folders that their paths lead
// through, so that a file that is replaced by rename, deleted, or made later is seen as well as one
// that is written. Where symbolic links are on the way (that stay inside), each of them is watched
// in its own folder, and where it leads to as well.
//
// Not seen: writes through a memory map or another hard link, and what other machines do to a
// network file system.
//
// Owner: the plugin. Thread: as each function says. No path is looked up while the lock is held
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

inline constexpr std::size_t max_subscriptions = 1024;    // of one workspace
inline constexpr std::size_t max_watched_folders = 4096;  // of one workspace, on the ways to them

class Watcher {
 public:
  explicit Watcher(std::size_t max_folders = max_watched_folders) : max_folders_(max_folders) {}

  // Empty: it works, for each of these folders. Else why not; then add() must not be called.
  std::string open(const std::vector<Workspace> &workspaces);

  // Readable when something has happened.
  int fd() const noexcept { return inotify_.get(); }

  // `path` is one of a file in that workspace, there or not; `uri` is what it is told as. Again for
  // the same URI: nothing. Empty, or why not. Thread: any; may block.
  std::string add(const std::string &uri, const Workspace &workspace, const std::string &path);
  // Thread: any; may block.
  void remove(const std::string &uri);

  // What has happened since; of very much a part, and fd() stays readable. Thread: one at a time.
  void read_events();
  // The URIs that may have changed, each once; they are forgotten. Thread: any.
  std::vector<std::string> take_changed();
  // The ways to some files are others now. Thread: any.
  bool must_follow() const;
  // Finds those ways again. Thread: any; may block.
  void follow();

 private:
  // A name in a watched folder that a path leads through.
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
    // Once for each step in it.
    std::unordered_map<std::string, std::vector<Subscription *>> names;
  };

  std::string find_way(Subscription *subscription, std::vector<Step> *steps);
  std::string watch_step(Subscription *subscription, const Fd &folder, const std::string &name,
                         std::vector<Step> *steps);
  std::string keep_folder(const Workspace &workspace, int watch);
  void end_unused(int watch);
  void leave(const Subscription &subscription, const std::vector<Step> &steps);
  void happened(int watch, std::uint32_t mask, const std::string &name);
  static void changed(Folder &folder);
  std::size_t count(const Workspace &workspace) const;
  std::size_t count_folders(const Workspace &workspace) const;

  const std::size_t max_folders_;
  Fd inotify_;
  std::mutex order_;         // held by who changes what is watched, as long as that takes
  mutable std::mutex lock_;  // of all below, for moments
  std::map<std::string, Subscription, std::less<>> subscriptions_;  // by URI
  std::unordered_map<int, Folder> folders_;                         // by watch
};

}  // namespace builtin_files
