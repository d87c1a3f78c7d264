#include "builtin-files/workspace.hpp"

#include <bulkhead/cpp/text.hpp>

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace builtin_files {
namespace {

constexpr std::size_t max_path = 4096;
constexpr std::size_t max_name = 255;
constexpr std::size_t shown_path = 200;  // limit for paths in error messages, in bytes
constexpr std::string_view linked =
    "a part of the path was replaced by a symbolic link; if this was intended, reload the profile";
constexpr std::string_view no_openat2 =
    "openat2 (Linux 5.6) is not available; it is required to restrict paths to the workspace";
constexpr std::string_view temporary_head = ".bulkhead-";
constexpr std::string_view temporary_tail = ".tmp";

int open_beneath(int root, const char *path, int flags, mode_t mode,
                 Links links = Links::follow) noexcept {
  open_how how{};
  // Without O_NONBLOCK, opening a FIFO would wait for a writer. Without O_NOCTTY, a terminal could
  // become the controlling terminal.
  how.flags = static_cast<unsigned long long>(flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  how.mode = mode;
  // openat2() rejects these flags together with O_PATH.
  if ((flags & O_PATH) != 0) how.flags &= ~static_cast<unsigned long long>(O_NONBLOCK | O_NOCTTY);
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
  if (links == Links::refuse) how.resolve |= RESOLVE_NO_SYMLINKS;
  // EAGAIN: part of the tree was renamed while the kernel resolved the path.
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

// Returns the error message for an invalid path, or an empty string if the path is valid.
std::string path_problem(std::string_view path, const std::string &workspace) {
  if (path.empty()) return "the path is empty; \".\" is the workspace itself";
  if (path.size() > max_path) return "the path is longer than 4096 bytes";
  if (path.find('\0') != path.npos) return "the path contains a NUL";
  if (path.front() == '/') {
    return shown(path) + " is absolute; paths are relative to the workspace \"" + workspace + "\"";
  }
  if (has_parent_step(path)) return shown(path) + " contains \"..\", which is not allowed";
  return {};
}

std::string open_problem(int error, std::string_view path, const std::string &workspace) {
  switch (error) {
    case EXDEV:
      return shown(path) + " leads out of the workspace \"" + workspace + "\"";
    case ELOOP:
      return shown(path) + " leads through a symbolic link, which is not followed";
    case ENOENT:
      return "there is no " + shown(path) + " in the workspace \"" + workspace + "\"";
    case ENOTDIR:
      return shown(path) + " is not a folder, or one of its parents is not";
    case EACCES:
      return "reading " + shown(path) + " is not permitted";
    case ENAMETOOLONG:
      return shown(path) + " has a name of more than 255 bytes";
    default:
      return shown(path) + " cannot be opened: " + bh::error_name(error);
  }
}

std::string real_path(const std::string &path) {
  const std::unique_ptr<char, decltype(&::free)> real(::realpath(path.c_str(), nullptr), ::free);
  return real ? std::string(real.get()) : path;
}

}  // namespace

Fd::~Fd() {
  if (fd_ >= 0) ::close(fd_);
}

std::string shown(std::string_view path) {
  return "\"" + std::string(path.substr(0, shown_path)) + (path.size() > shown_path ? "..." : "") +
         "\"";
}

bool is_temporary_name(std::string_view name) noexcept {
  return name.size() == temporary_head.size() + 16 + temporary_tail.size() &&
         name.starts_with(temporary_head) && name.ends_with(temporary_tail);
}

std::string temporary_name(std::string_view name) {
  std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  std::string out(temporary_head);
  hash = __builtin_bswap64(hash);
  out += bh::hex({reinterpret_cast<const char *>(&hash), sizeof hash});
  return out.append(temporary_tail);
}

Fd Workspace::open_named(const std::string &path, int flags, Links links) noexcept {
  open_how how{};
  how.flags = static_cast<unsigned long long>(flags | O_CLOEXEC);
  how.resolve = RESOLVE_NO_SYMLINKS;
  if (links == Links::follow) return Fd(::open(path.c_str(), flags | O_CLOEXEC));
  return Fd(static_cast<int>(::syscall(SYS_openat2, AT_FDCWD, path.c_str(), &how, sizeof how)));
}

bool Workspace::open(std::string name, const std::string &path, Workspace *out,
                     std::string *problem, Links links) {
  Fd root = open_named(path, O_PATH | O_DIRECTORY, links);
  if (!root.valid() && links == Links::refuse && (errno == ENOSYS || errno == EPERM)) {
    *problem = no_openat2;
    return false;
  }
  if (!root.valid()) {
    *problem = "the folder " + shown(path) + " of the workspace \"" + name +
               "\" cannot be opened: " +
               (errno == ELOOP ? std::string(linked) : std::string(bh::error_name(errno)));
    return false;
  }
  const Fd probe(open_beneath(root.get(), ".", O_PATH | O_DIRECTORY, 0));
  if (!probe.valid() && (errno == ENOSYS || errno == EPERM)) {
    *problem = no_openat2;
    return false;
  }
  out->name_ = std::move(name);
  out->path_ = real_path(path);
  out->root_ = std::move(root);
  return true;
}

void Workspace::allow_writing(std::uint64_t bytes) noexcept {
  left_ = std::make_unique<std::atomic<std::uint64_t>>(bytes);
}

bool Workspace::take(std::uint64_t bytes) const noexcept {
  std::uint64_t left = left_->load(std::memory_order_relaxed);
  while (left >= bytes) {
    if (left_->compare_exchange_weak(left, left - bytes, std::memory_order_relaxed)) return true;
  }
  return false;
}

Opened Workspace::open(std::string_view path, int flags) const {
  if (std::string problem = path_problem(path, name_); !problem.empty()) {
    return {Fd(), std::move(problem)};
  }
  Fd fd(open_beneath(root_.get(), std::string(path).c_str(), flags, 0));
  if (fd.valid()) return {std::move(fd), {}};
  const int error = errno;
  return {Fd(), open_problem(error, path, name_), error};
}

Opened Workspace::open_folder(const std::string &path, bool make, Links links) const {
  const auto open_at = [&](const std::string &at) {
    return Fd(open_beneath(root_.get(), at.c_str(), O_RDONLY | O_DIRECTORY, 0, links));
  };
  Fd fd = open_at(path);
  if (fd.valid()) return {std::move(fd), {}};
  if (!make || errno != ENOENT) return {Fd(), open_problem(errno, path, name_)};
  fd = open_at(".");
  for (std::size_t at = 0; fd.valid() && at < path.size();) {
    const std::size_t slash = std::min(path.find('/', at), path.size());
    const std::string name = path.substr(at, slash - at);
    at = slash + 1;
    if (name.empty() || name == ".") continue;
    if (::mkdirat(fd.get(), name.c_str(), 0777) != 0 && errno != EEXIST) {
      return {Fd(), "the folder " + shown(path) + " cannot be created: " + bh::error_name(errno)};
    }
    // Resolves the path from the workspace root, so links within the workspace can be followed.
    fd = open_at(path.substr(0, slash));
  }
  if (fd.valid()) return {std::move(fd), {}};
  return {Fd(), open_problem(errno, path, name_)};
}

Place Workspace::place(std::string_view path, bool make_folders, Links links) const {
  Place out;
  out.problem = path_problem(path, name_);
  if (!out.problem.empty()) return out;
  while (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
  const std::size_t slash = path.rfind('/');
  out.name = path.substr(slash == path.npos ? 0 : slash + 1);
  if (out.name == ".") {
    out.problem = shown(path) + " is the workspace itself or does not end with a file name";
  } else if (out.name.size() > max_name) {
    out.problem = shown(path) + " has a name of more than 255 bytes";
  } else if (is_temporary_name(out.name)) {
    out.problem = shown(path) + " is a name reserved for temporary files";
  }
  if (!out.problem.empty()) return out;
  Opened folder = open_folder(slash == path.npos ? "." : std::string(path.substr(0, slash + 1)),
                              make_folders, links);
  out.folder = std::move(folder.fd);
  out.problem = std::move(folder.problem);
  return out;
}

Fd Workspace::open_below(int folder, const char *name, int flags, mode_t mode) noexcept {
  return Fd(open_beneath(folder, name, flags, mode));
}

}  // namespace builtin_files
