#include "builtin-files/watcher.hpp"

#include <bulkhead/cpp/text.hpp>

#include <fcntl.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

namespace builtin_files {
namespace {

constexpr std::uint32_t moves = IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO;
constexpr std::uint32_t interest =
    moves | IN_MODIFY | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR | IN_EXCL_UNLINK;
constexpr std::size_t max_watched_names =
    4096;  // limit for the path components, including components of link targets
constexpr int max_reads = 16;  // limit for reads of 64 KiB per read_events() call

// Returns a path that refers to an open file or folder.
std::string path_of(const Fd &fd) {
  return "/proc/self/fd/" + std::to_string(fd.get());
}

std::string watch_problem(int error) {
  if (error == ENOSPC) {
    return "the inotify limit of this user is reached (fs.inotify.max_user_watches)";
  }
  if (error == EACCES) return "a parent folder is not readable";
  return std::string("a folder cannot be watched: ") + bh::error_name(error);
}

// Splits a path into its components. Omits empty components and ".".
std::vector<std::string> owned_components(std::string_view path) {
  std::vector<std::string> out;
  while (!path.empty()) {
    const std::size_t slash = std::min(path.find('/'), path.size());
    const std::string_view name = path.substr(0, slash);
    if (!name.empty() && name != ".") out.emplace_back(name);
    path.remove_prefix(std::min(slash + 1, path.size()));
  }
  return out;
}

bool is_not_there(int error) {
  return error == ENOENT || error == ENOTDIR;
}

// Returns the target of a symbolic link. Returns an empty string if the target is absolute or too
// long, because such a target cannot be followed within the workspace.
std::string target_of(const Fd &link) {
  std::array<char, 4096> text{};
  const ssize_t n = ::readlinkat(link.get(), "", text.data(), text.size());
  if (n <= 0 || static_cast<std::size_t>(n) == text.size() || text[0] == '/') return {};
  return std::string(text.data(), static_cast<std::size_t>(n));
}

// Resolves a path component by component, as the kernel does. After a symbolic link, continues with
// the components of the link target.
class PathWalk {
 public:
  PathWalk(const Workspace &workspace, const std::string &path)
      : workspace_(workspace), folder_(workspace.open(".", O_PATH | O_DIRECTORY).fd) {
    put_before(path);
  }

  // Moves to the next component. Returns false at the end of the path.
  bool next() {
    while (folder_.valid() && !names_.empty() && names_.back() == "..") {
      names_.pop_back();
      go_up();
    }
    if (!folder_.valid() || names_.empty()) return false;
    name_ = std::move(names_.back());
    names_.pop_back();
    return true;
  }
  const Fd &folder() const noexcept { return folder_; }
  const std::string &name() const noexcept { return name_; }

  // Enters the current component if it is a folder, or follows it if it is a link. In all other
  // cases, and if the path leads out of the workspace, the walk ends.
  void enter() {
    Fd entry = Workspace::open_below(folder_.get(), name_.c_str(), O_PATH | O_NOFOLLOW);
    struct stat s{};
    if (!entry.valid() || ::fstat(entry.get(), &s) != 0) return names_.clear();
    if (S_ISDIR(s.st_mode)) {
      above_.push_back(name_);
      folder_ = std::move(entry);
      return;
    }
    const std::string target = S_ISLNK(s.st_mode) ? target_of(entry) : std::string();
    if (target.empty() || ++links_ > max_links) return names_.clear();
    put_before(target);
  }

 private:
  static constexpr int max_links = 40;  // the same limit as in the kernel

  void put_before(const std::string &path) {
    const std::vector<std::string> more = owned_components(path);
    names_.insert(names_.end(), more.rbegin(), more.rend());
  }

  void go_up() {
    if (above_.empty()) return names_.clear();  // the path leads out of the workspace
    above_.pop_back();
    std::string path = ".";
    for (const std::string &name : above_) path.append("/").append(name);
    folder_ = workspace_.open(path, O_PATH | O_DIRECTORY).fd;
  }

  const Workspace &workspace_;
  Fd folder_;
  std::vector<std::string> above_;  // path of folder_; contains no links
  std::vector<std::string> names_;  // remaining components in reverse order
  std::string name_;
  int links_ = 0;
};

// Calls a function at the end of the scope unless commit() has been called.
template <class Undo>
class Rollback {
 public:
  explicit Rollback(Undo undo) : undo_(std::move(undo)) {}
  ~Rollback() {
    if (!committed_) undo_();
  }
  Rollback(const Rollback &) = delete;
  Rollback &operator=(const Rollback &) = delete;
  void commit() noexcept { committed_ = true; }

 private:
  Undo undo_;
  bool committed_ = false;
};

}  // namespace

std::string Watcher::open(const std::vector<Workspace> &workspaces) {
  inotify_ = Fd(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
  if (!inotify_.valid()) return std::string("cannot use inotify: ") + bh::error_name(errno);
  for (const Workspace &workspace : workspaces) {
    const Opened root = workspace.open(".", O_PATH | O_DIRECTORY);
    if (!root.fd.valid()) return root.problem;
    const int watch = ::inotify_add_watch(inotify_.get(), path_of(root.fd).c_str(), interest);
    if (watch < 0) return shown(workspace.root()) + ": " + watch_problem(errno);
    ::inotify_rm_watch(inotify_.get(), watch);
  }
  return {};
}

std::size_t Watcher::count(const Workspace &workspace) const {
  return static_cast<std::size_t>(
      std::count_if(subscriptions_.begin(), subscriptions_.end(),
                    [&](const auto &entry) { return entry.second.workspace == &workspace; }));
}

std::size_t Watcher::count_folders(const Workspace &workspace) const {
  return static_cast<std::size_t>(
      std::count_if(folders_.begin(), folders_.end(),
                    [&](const auto &entry) { return entry.second.workspace == &workspace; }));
}

std::string Watcher::add(const std::string &uri, const Workspace &workspace,
                         const std::string &path) {
  const std::lock_guard in_order(order_);
  Subscription *subscription = nullptr;
  {
    const std::lock_guard guard(lock_);
    if (subscriptions_.contains(uri)) return {};
    if (count(workspace) >= max_subscriptions) {
      return "1024 files of the workspace \"" + workspace.name() +
             "\" are already subscribed to; unsubscribe from some";
    }
    subscription = &subscriptions_.emplace(uri, Subscription{&workspace, path}).first->second;
  }
  Rollback rollback([&] {
    const std::lock_guard guard(lock_);
    leave(*subscription, subscription->steps);
    subscriptions_.erase(uri);
  });
  std::string problem = resolve_path(subscription, &subscription->steps);
  if (problem.empty()) rollback.commit();
  return problem;
}

void Watcher::remove(const std::string &uri) {
  const std::lock_guard in_order(order_);
  const std::lock_guard guard(lock_);
  const auto at = subscriptions_.find(uri);
  if (at == subscriptions_.end()) return;
  leave(at->second, at->second.steps);
  subscriptions_.erase(at);
}

// Watches each folder before looking up a name in it, so no change is missed.
std::string Watcher::resolve_path(Subscription *subscription, std::vector<Step> *steps) {
  const Workspace &workspace = *subscription->workspace;
  PathWalk way(workspace, subscription->path);
  for (std::size_t names = 0; way.next(); ++names) {
    if (names == max_watched_names)
      return shown(subscription->path) + " has too many parent folders and links";
    std::string problem = watch_step(subscription, way.folder(), way.name(), steps);
    if (!problem.empty()) return problem;
    way.enter();
  }
  // Checks whether the path is a regular file. A missing file is accepted.
  const Opened file = workspace.open(subscription->path, O_PATH);
  if (!file.fd.valid()) return is_not_there(file.error) ? std::string() : file.problem;
  struct stat s{};
  if (::fstat(file.fd.get(), &s) == 0 && S_ISREG(s.st_mode)) return {};
  return shown(subscription->path) + " is not a regular file";
}

// Watches `folder` for changes to `name`, and appends the step to *steps. If this function throws,
// the steps in *steps must be passed to leave().
std::string Watcher::watch_step(Subscription *subscription, const Fd &folder,
                                const std::string &name, std::vector<Step> *steps) {
  const std::lock_guard guard(lock_);
  const int watch = ::inotify_add_watch(inotify_.get(), path_of(folder).c_str(), interest);
  if (watch < 0) return watch_problem(errno);
  Rollback rollback([&] { end_unused(watch); });  // no effect if the watch is in use
  std::string problem = keep_folder(*subscription->workspace, watch);
  if (!problem.empty()) return problem;
  const Step step{watch, name};
  if (std::find(steps->begin(), steps->end(), step) != steps->end()) return {};
  steps->push_back(step);
  folders_[watch].names[name].push_back(subscription);
  return {};
}

// Registers a watched folder, or removes its watch and returns an error if the folder limit is
// reached. The caller must hold lock_.
std::string Watcher::keep_folder(const Workspace &workspace, int watch) {
  if (folders_.contains(watch)) return {};
  Rollback rollback([&] { ::inotify_rm_watch(inotify_.get(), watch); });
  if (count_folders(workspace) >= max_folders_) {
    return std::to_string(max_folders_) + " folders of the workspace \"" + workspace.name() +
           "\" are already watched; unsubscribe from some files";
  }
  folders_[watch].workspace = &workspace;
  rollback.commit();
  return {};
}

// Removes the steps of a subscription and all watches that become unused. The caller must hold
// lock_.
void Watcher::leave(const Subscription &subscription, const std::vector<Step> &steps) {
  for (const Step &step : steps) {
    const auto folder = folders_.find(step.watch);
    if (folder == folders_.end()) continue;  // the kernel has removed the watch
    auto &names = folder->second.names;
    const auto name = names.find(step.name);
    if (name == names.end()) continue;
    auto &those = name->second;
    const auto at = std::find(those.begin(), those.end(), &subscription);
    if (at != those.end()) those.erase(at);
    if (those.empty()) names.erase(name);
    end_unused(step.watch);
  }
}

// Removes the watch if no subscription uses it. The caller must hold lock_.
void Watcher::end_unused(int watch) {
  const auto folder = folders_.find(watch);
  if (folder == folders_.end() || !folder->second.names.empty()) return;
  ::inotify_rm_watch(inotify_.get(), watch);
  folders_.erase(folder);
}

// ---- events ----------------------------------------------------------------------------------

void Watcher::read_events() {
  alignas(inotify_event) std::array<char, 64 << 10> bytes;
  for (int i = 0; i < max_reads; ++i) {
    const ssize_t n = ::read(inotify_.get(), bytes.data(), bytes.size());
    if (n <= 0) return;
    const std::lock_guard guard(lock_);
    for (std::size_t at = 0; at < static_cast<std::size_t>(n);) {
      inotify_event event{};
      std::memcpy(&event, bytes.data() + at, sizeof event);
      const char *name = bytes.data() + at + sizeof event;
      on_event(event.wd, event.mask, std::string(name, ::strnlen(name, event.len)));
      at += sizeof event + event.len;
    }
  }
}

void Watcher::changed(Folder &folder) {
  for (auto &[name, those] : folder.names) {
    for (Subscription *subscription : those) subscription->changed = subscription->moved = true;
  }
}

// The caller must hold lock_.
void Watcher::on_event(int watch, std::uint32_t mask, const std::string &name) {
  if ((mask & IN_Q_OVERFLOW) != 0) {  // events were lost, so any file may have changed
    for (auto &[uri, subscription] : subscriptions_) {
      subscription.changed = subscription.moved = true;
    }
    return;
  }
  const auto folder = folders_.find(watch);
  if (folder == folders_.end()) return;
  if ((mask & (IN_IGNORED | IN_DELETE_SELF | IN_MOVE_SELF | IN_UNMOUNT)) != 0) {
    changed(folder->second);
    if ((mask & IN_IGNORED) != 0) folders_.erase(folder);  // the kernel has removed the watch
    return;
  }
  const auto at = folder->second.names.find(name);
  if (at == folder->second.names.end()) return;
  for (Subscription *subscription : at->second) {
    subscription->changed = true;
    if ((mask & moves) != 0) subscription->moved = true;
  }
}

std::vector<std::string> Watcher::dequeue_changed() {
  std::vector<std::string> out;
  const std::lock_guard guard(lock_);
  for (auto &[uri, subscription] : subscriptions_) {
    if (std::exchange(subscription.changed, false)) out.push_back(uri);
  }
  return out;
}

bool Watcher::must_follow() const {
  const std::lock_guard guard(lock_);
  return std::any_of(subscriptions_.begin(), subscriptions_.end(),
                     [](const auto &entry) { return entry.second.moved; });
}

void Watcher::follow() {
  const std::lock_guard in_order(order_);  // no subscription is added or removed during this call
  std::vector<Subscription *> moved;
  {
    const std::lock_guard guard(lock_);
    for (auto &[uri, subscription] : subscriptions_) {
      if (subscription.moved) moved.push_back(&subscription);
    }
  }
  for (Subscription *subscription : moved) {
    std::vector<Step> steps;
    Rollback rollback([&] {
      const std::lock_guard guard(lock_);
      leave(*subscription, steps);
      subscription->moved = true;
    });
    {
      const std::lock_guard guard(lock_);
      subscription->moved = false;
    }
    resolve_path(subscription,
                 &steps);  // on failure, keeps the steps found so far; the failure may be temporary
    rollback.commit();
    const std::lock_guard guard(lock_);
    // Changes made before the new folder was watched were missed, so the file is reported as
    // changed.
    if (steps != subscription->steps) subscription->changed = true;
    leave(*subscription, subscription->steps);
    subscription->steps = std::move(steps);
  }
}

}  // namespace builtin_files
