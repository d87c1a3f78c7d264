#include "common/trusted_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string_view>

#include "base/owned_fd.hpp"
#include "common/paths.hpp"

namespace bulkhead::program {
namespace {

std::string untrusted(const struct stat &info, const std::vector<uid_t> &owners) {
  if (std::find(owners.begin(), owners.end(), info.st_uid) == owners.end()) {
    std::string permitted;
    for (const uid_t owner : owners) {
      permitted += permitted.empty() ? "" : " or ";
      permitted += owner == 0 ? "root" : "user " + std::to_string(owner);
    }
    return "is owned by user " + std::to_string(info.st_uid) + "; the owner must be " + permitted;
  }
  const bool sticky_folder = S_ISDIR(info.st_mode) && (info.st_mode & S_ISVTX) != 0;
  if ((info.st_mode & (S_IWGRP | S_IWOTH)) != 0 && !sticky_folder) {
    return "is writable by users other than its owner (run chmod go-w)";
  }
  return {};
}

std::unexpected<Error> opening_failed(const std::string &path, int error) {
  if (error == ENOENT) return fail(BH_E_NOT_FOUND, path + ": no such file");
  if (error == ELOOP) return fail(BH_E_DENIED, path + " is a symbolic link, which is not allowed");
  return fail(BH_E_IO, describe_errno(path, error));
}

// Opens one component of the path. Returns an error if a user who is not in `owners` could have
// created it.
Result<OwnedFd> step(int folder, const std::string &name, const std::string &path, bool last,
                     const std::vector<uid_t> &owners) {
  const int flags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
  OwnedFd fd(::openat(folder, name.c_str(), last ? flags : (flags | O_DIRECTORY)));
  if (!fd) {
    const int error = errno;
    struct stat info{};
    // Opening a symbolic link with O_DIRECTORY fails with ENOTDIR.
    if (error == ENOTDIR && ::fstatat(folder, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0 &&
        S_ISLNK(info.st_mode)) {
      return opening_failed(path, ELOOP);
    }
    return opening_failed(path, error);
  }
  struct stat info{};
  if (::fstat(fd.get(), &info) != 0) return opening_failed(path, errno);
  if (last && !S_ISREG(info.st_mode)) return fail(BH_E_DENIED, path + " is not a regular file");
  if (std::string why = untrusted(info, owners); !why.empty()) {
    return fail(BH_E_DENIED, path + ": " + why);
  }
  return fd;
}

}  // namespace

Result<std::string> read_trusted(const std::string &path, const std::vector<uid_t> &owners,
                                 std::size_t most) {
  if (!path.starts_with('/')) return fail(BH_E_INVALID, path + ": the path must be absolute");
  auto fd = step(AT_FDCWD, "/", "/", false, owners);
  for (std::size_t at = 1; fd && at < path.size();) {
    const std::size_t end = std::min(path.find('/', at), path.size());
    const std::string name = path.substr(at, end - at);
    at = end + 1;
    if (name.empty() || name == ".") continue;
    if (name == "..") return fail(BH_E_INVALID, path + ": \"..\" is not allowed");
    fd = step(fd->get(), name, path.substr(0, end), end == path.size(), owners);
  }
  if (!fd) return std::unexpected(fd.error());
  std::string text;
  char block[65'536];
  while (text.size() <= most) {
    const ssize_t n = ::read(fd->get(), block, sizeof block);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail(BH_E_IO, describe_errno(path, errno));
    if (n == 0) return text;
    text.append(block, static_cast<std::size_t>(n));
  }
  return fail(BH_E_LIMIT, path + " is larger than " + std::to_string(most) + " bytes");
}

}  // namespace bulkhead::program
