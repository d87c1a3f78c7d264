#include "sandbox/path_walk.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <utility>

#include "base/owned_fd.hpp"
#include "sandbox/paths.hpp"

namespace bulkhead {
namespace {

bool means_lack_of_resources(int error) {
  return error == EMFILE || error == ENFILE || error == ENOMEM;
}

class Walker {
 public:
  explicit Walker(std::size_t most) : most_(most) {}

  PathWalk walk(const std::string &path) {
    push(path);
    enter(::open("/", O_PATH | O_DIRECTORY | O_CLOEXEC), 0);
    while (!rest_.empty() && !walk_.given_up) {
      const std::string name = std::move(rest_.back());
      rest_.pop_back();
      ++count_;
      name == ".." ? go_up() : go_down(name);
      if (!missing_ && at_.size() >= PATH_MAX) walk_.given_up = true;
    }
    walk_.end = std::move(at_);
    walk_.innermost = current_;
    walk_.exists = !missing_ && !walk_.given_up;
    return std::move(walk_);
  }
  std::size_t count() const { return count_; }

 private:
  // Adds the components of `path` to the rest of the walk, the first one on top.
  void push(const std::string &path) {
    for (std::size_t end = path.size(); end > 0;) {
      const std::size_t slash = path.rfind('/', end - 1);
      const std::size_t begin = slash == std::string::npos ? 0 : slash + 1;
      std::string name = path.substr(begin, end - begin);
      if (!name.empty() && name != ".") rest_.push_back(std::move(name));
      end = slash == std::string::npos ? 0 : slash;
    }
    if (count_ + rest_.size() > most_) walk_.given_up = true;
  }

  // Continues in a folder. Takes its descriptor, which is negative if it could not be opened.
  void enter(int folder, std::size_t above) {
    folder_ = OwnedFd(folder);
    struct stat info{};
    if (!folder_ || ::fstat(folder_.get(), &info) != 0) {
      // For example, a network file system whose server does not respond.
      if (folder_ && !walk_.folders.empty()) return stop(errno, at_);
      walk_.given_up = true;
      return;
    }
    current_ = walk_.folders.size();
    walk_.folders.push_back({info.st_dev, info.st_ino, above});
  }

  void go_up() {
    const std::string folder = std::exchange(at_, parent_of(at_));
    if (missing_ && below_ > 0) {
      --below_;
      return;
    }
    current_ = walk_.folders[current_].above;
    if (missing_) return;
    folder_ = OwnedFd(::openat(folder_.get(), "..", O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (folder_) return;
    stop(errno, folder);
    below_ = 0;
  }

  void go_down(const std::string &name) {
    const std::string folder = std::exchange(at_, joined(at_, name));
    if (missing_) {
      ++below_;
      return;
    }
    if (!rest_.empty()) {
      // O_DIRECTORY also mounts a file system that is mounted on demand.
      constexpr int flags = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
      const int found = ::openat(folder_.get(), name.c_str(), flags);
      if (found >= 0) return enter(found, current_);
      if (errno != ENOTDIR && errno != ELOOP) return stop(errno, folder);
    }
    char target[PATH_MAX];
    const ssize_t size = ::readlinkat(folder_.get(), name.c_str(), target, sizeof target);
    if (size >= 0) return follow(folder, std::string(target, static_cast<std::size_t>(size)));
    if (errno != EINVAL) return stop(errno, folder);
    if (!rest_.empty()) return stop(ENOTDIR, folder);  // EINVAL: it exists and is not a link
    note_last(name);
  }

  void note_last(const std::string &name) {
    struct stat info{};
    if (::fstatat(folder_.get(), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) return;
    if (!S_ISDIR(info.st_mode)) return;
    walk_.folders.push_back({info.st_dev, info.st_ino, current_});
    current_ = walk_.folders.size() - 1;
  }

  void stop(int error, const std::string &folder) {
    missing_ = true;
    below_ = 1;
    if (means_lack_of_resources(error)) {
      walk_.given_up = true;
    } else if (!means_missing(error)) {
      walk_.closed = folder;
    }
  }

  void follow(const std::string &folder, std::string target) {
    walk_.links.push_back({at_, target, rest_.empty(), current_});
    if (walk_.links.size() > PathWalk::most_links) return stop(ENOENT, folder);
    push(target);
    at_ = folder;
    if (!target.starts_with('/')) return;
    at_ = "/";
    current_ = 0;
    folder_ = OwnedFd(::open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!folder_) walk_.given_up = true;
  }

  const std::size_t most_;
  PathWalk walk_;
  std::vector<std::string> rest_;
  std::string at_ = "/";
  OwnedFd folder_;
  std::size_t current_ = 0, count_ = 0;
  bool missing_ = false;
  std::size_t below_ = 0;  // components of at_ below the last existing folder
};

}  // namespace

PathWalk walk_path(const std::string &path, WalkBudget *budget) {
  constexpr std::size_t most = PathWalk::most_components;
  Walker walker(budget == nullptr ? most : std::min(most, budget->left));
  PathWalk walk = walker.walk(path);
  if (budget == nullptr) return walk;
  budget->left -= std::min(budget->left, walker.count());
  if (walk.given_up && budget->failed.empty()) budget->failed = path;
  return walk;
}

}  // namespace bulkhead
