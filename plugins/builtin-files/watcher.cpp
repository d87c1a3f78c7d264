#include "builtin-files/watcher.hpp"

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
constexpr int max_reads = 16;  // of 64 KiB, before others have their turn

// By the descriptor, so that the folder is the one that the kernel has found within the workspace.
std::string path_of(const Fd &fd) {
  return "/proc/self/fd/" + std::to_string(fd.get());
}

std::string watch_problem(int error) {
  if (error == ENOSPC) {
    return "the system watches no more folders for this user (fs.inotify.max_user_watches)";
  }
  if (error == EACCES) return "a folder on the way to it may not be read";
  return std::string("it cannot be watched: ") + error_name(error);
}

// Without empty and "." components.
std::vector<std::string> components(std::string_view path) {
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

// Where links lead to, relative to the workspace; empty: not known.
std::string real_path_of(const Fd &file, const Workspace &workspace) {
  std::array<char, 4096 + 256> text{};
  const ssize_t n = ::readlink(path_of(file).c_str(), text.data(), text.size());
  if (n <= 0 || static_cast<std::size_t>(n) == text.size()) return {};
  const std::string_view real(text.data(), static_cast<std::size_t>(n));
  const std::string root = workspace.root() == "/" ? "/" : workspace.root() + "/";
  return real.starts_with(root) ? std::string(real.substr(root.size())) : std::string();
}

}  // namespace

std::string Watcher::open(const std::vector<Workspace> &workspaces) {
  inotify_ = Fd(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
  if (!inotify_.valid()) return std::string("inotify: ") + error_name(errno);
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
             "\" are subscribed to already; unsubscribe from some";
    }
    subscription = &subscriptions_.emplace(uri, Subscription{&workspace, path}).first->second;
  }
  std::vector<Step> steps;
  std::string problem = find_ways(*subscription, &steps);
  const std::lock_guard guard(lock_);
  if (problem.empty()) {
    subscription->steps = std::move(steps);
  } else {
    leave(*subscription, steps);
    subscriptions_.erase(uri);
  }
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

// The way that the path names, and the one that it leads by where links are on it. A folder is
// watched before the next one is looked for in it, so that nothing comes between unseen.
std::string Watcher::find_ways(Subscription &subscription, std::vector<Step> *steps) {
  const Workspace &workspace = *subscription.workspace;
  if (std::string problem = watch_way(subscription, subscription.path, steps); !problem.empty()) {
    return problem;
  }
  const Opened file = workspace.open(subscription.path, O_PATH);
  if (!file.fd.valid()) return is_not_there(file.error) ? std::string() : file.problem;
  struct stat s{};
  if (::fstat(file.fd.get(), &s) != 0 || !S_ISREG(s.st_mode)) {
    return shown(subscription.path) + " is not a regular file";
  }
  const std::string real = real_path_of(file.fd, workspace);
  if (real.empty() || components(real) == components(subscription.path)) return {};
  return watch_way(subscription, real, steps);
}

std::string Watcher::watch_way(Subscription &subscription, const std::string &path,
                               std::vector<Step> *steps) {
  std::string folder = ".";
  for (const std::string &name : components(path)) {
    const Opened opened = subscription.workspace->open(folder, O_PATH | O_DIRECTORY);
    if (!opened.fd.valid()) return is_not_there(opened.error) ? std::string() : opened.problem;
    std::string problem = watch_step(subscription, opened.fd, name, steps);
    if (!problem.empty()) return problem;
    folder.append("/").append(name);
  }
  return {};
}

std::string Watcher::watch_step(Subscription &subscription, const Fd &folder,
                                const std::string &name, std::vector<Step> *steps) {
  const Workspace &workspace = *subscription.workspace;
  const std::lock_guard guard(lock_);
  const int watch = ::inotify_add_watch(inotify_.get(), path_of(folder).c_str(), interest);
  if (watch < 0) return watch_problem(errno);
  if (!folders_.contains(watch)) {
    if (count_folders(workspace) >= max_folders_) {
      ::inotify_rm_watch(inotify_.get(), watch);
      return std::to_string(max_folders_) + " folders of the workspace \"" + workspace.name() +
             "\" are watched already; unsubscribe from some files";
    }
    folders_[watch].workspace = &workspace;
  }
  folders_[watch].names[name].push_back(&subscription);
  steps->push_back({watch, name});
  return {};
}

// Under lock_.
void Watcher::leave(const Subscription &subscription, const std::vector<Step> &steps) {
  for (const Step &step : steps) {
    const auto folder = folders_.find(step.watch);
    if (folder == folders_.end()) continue;  // the kernel has ended this watch
    auto &names = folder->second.names;
    const auto name = names.find(step.name);
    if (name == names.end()) continue;
    auto &those = name->second;
    const auto at = std::find(those.begin(), those.end(), &subscription);
    if (at != those.end()) those.erase(at);
    if (those.empty()) names.erase(name);
    if (!names.empty()) continue;
    ::inotify_rm_watch(inotify_.get(), step.watch);
    folders_.erase(folder);
  }
}

// ---- what happens ----------------------------------------------------------------------------

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
      happened(event.wd, event.mask, std::string(name, ::strnlen(name, event.len)));
      at += sizeof event + event.len;
    }
  }
}

void Watcher::changed(Folder &folder) {
  for (auto &[name, those] : folder.names) {
    for (Subscription *subscription : those) subscription->changed = subscription->moved = true;
  }
}

// Under lock_.
void Watcher::happened(int watch, std::uint32_t mask, const std::string &name) {
  if ((mask & IN_Q_OVERFLOW) != 0) {  // more than the kernel remembers: it may be anything
    for (auto &[uri, subscription] : subscriptions_) {
      subscription.changed = subscription.moved = true;
    }
    return;
  }
  const auto folder = folders_.find(watch);
  if (folder == folders_.end()) return;
  if ((mask & (IN_IGNORED | IN_DELETE_SELF | IN_MOVE_SELF | IN_UNMOUNT)) != 0) {
    changed(folder->second);
    if ((mask & IN_IGNORED) != 0) folders_.erase(folder);  // this watch is no more
    return;
  }
  const auto at = folder->second.names.find(name);
  if (at == folder->second.names.end()) return;
  for (Subscription *subscription : at->second) {
    subscription->changed = true;
    if ((mask & moves) != 0) subscription->moved = true;
  }
}

std::vector<std::string> Watcher::take_changed() {
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
  const std::lock_guard in_order(order_);  // what is subscribed to stays as it is meanwhile
  std::vector<Subscription *> moved;
  {
    const std::lock_guard guard(lock_);
    for (auto &[uri, subscription] : subscriptions_) {
      if (std::exchange(subscription.moved, false)) moved.push_back(&subscription);
    }
  }
  for (Subscription *subscription : moved) {
    std::vector<Step> steps;
    find_ways(*subscription, &steps);  // as far as they go: what is in the way now may leave it
    const std::lock_guard guard(lock_);
    // What came into a new folder before it was watched has been seen by nobody.
    if (steps != subscription->steps) subscription->changed = true;
    leave(*subscription, subscription->steps);
    subscription->steps = std::move(steps);
  }
}

}  // namespace builtin_files
