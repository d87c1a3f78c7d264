#include "builtin-files/workspace.hpp"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace builtin_files {
namespace {

constexpr std::size_t max_path = 4096;
constexpr std::size_t shown_path = 200;  // of a path in a sentence

int open_beneath(int root, const char *path, int flags) noexcept {
  open_how how{};
  // A FIFO must not wait for its writer, nor a terminal become ours.
  how.flags = static_cast<unsigned long long>(flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  // The kernel refuses flags that O_PATH would ignore.
  if ((flags & O_PATH) != 0) how.flags &= ~static_cast<unsigned long long>(O_NONBLOCK | O_NOCTTY);
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
  // EAGAIN: the tree was renamed while the kernel walked over it.
  for (int attempt = 0; attempt < 8; ++attempt) {
    const long fd = ::syscall(SYS_openat2, root, path, &how, sizeof how);
    if (fd >= 0 || (errno != EAGAIN && errno != EINTR)) return static_cast<int>(fd);
  }
  return -1;
}

bool has_parent_step(std::string_view path) {
  while (!path.empty()) {
    const std::size_t slash = path.find('/');
    if (path.substr(0, slash) == "..") return true;
    path = slash == path.npos ? std::string_view() : path.substr(slash + 1);
  }
  return false;
}

std::string shown(std::string_view path) {
  return "\"" + std::string(path.substr(0, shown_path)) + (path.size() > shown_path ? "..." : "") +
         "\"";
}

}  // namespace

Fd::~Fd() {
  if (fd_ >= 0) ::close(fd_);
}

std::string error_name(int error) {
  char buffer[128];
  return ::strerror_r(error, buffer, sizeof buffer);
}

bool Workspace::open(std::string name, const std::string &path, Workspace *out,
                     std::string *problem) {
  Fd root(::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!root.valid()) {
    *problem = "the folder " + shown(path) + " of the workspace \"" + name +
               "\" cannot be opened: " + error_name(errno);
    return false;
  }
  const Fd probe(open_beneath(root.get(), ".", O_PATH | O_DIRECTORY));
  if (!probe.valid() && (errno == ENOSYS || errno == EPERM)) {
    *problem = "this system has no openat2 (Linux 5.6), which keeps paths within the workspace";
    return false;
  }
  out->name_ = std::move(name);
  out->root_ = std::move(root);
  return true;
}

Opened Workspace::open(std::string_view path, int flags) const {
  const std::string where = " in the workspace \"" + name_ + "\"";
  if (path.empty()) return {Fd(), "the path is empty; \".\" is the workspace itself"};
  if (path.size() > max_path) return {Fd(), "the path is longer than 4096 bytes"};
  if (path.find('\0') != path.npos) return {Fd(), "the path contains a NUL"};
  if (path.front() == '/') {
    return {Fd(),
            shown(path) + " is absolute; paths are relative to the workspace \"" + name_ + "\""};
  }
  if (has_parent_step(path)) return {Fd(), shown(path) + " contains \"..\", which is not allowed"};
  Fd fd(open_beneath(root_.get(), std::string(path).c_str(), flags));
  if (fd.valid()) return {std::move(fd), {}};
  switch (errno) {
    case EXDEV:
      return {Fd(), shown(path) + " leads out of the workspace \"" + name_ + "\""};
    case ELOOP:
      return {Fd(), shown(path) + " leads through a symbolic link that is not followed"};
    case ENOENT:
      return {Fd(), "there is no " + shown(path) + where};
    case ENOTDIR:
      return {Fd(), shown(path) + " is not a folder or leads through something that is none"};
    case EACCES:
      return {Fd(), "reading " + shown(path) + " is not permitted"};
    default:
      return {Fd(), shown(path) + " cannot be opened: " + error_name(errno)};
  }
}

Fd Workspace::open_below(int folder, const char *name, int flags) noexcept {
  return Fd(open_beneath(folder, name, flags));
}

}  // namespace builtin_files
