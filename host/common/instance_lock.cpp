#include "common/instance_lock.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "common/paths.hpp"

namespace bulkhead::program {
namespace {

bool is_file_at(int fd, const std::string &path) {
  struct stat ours{}, there{};
  return ::fstat(fd, &ours) == 0 && ::lstat(path.c_str(), &there) == 0 &&
         ours.st_dev == there.st_dev && ours.st_ino == there.st_ino;
}

void stamp(int fd) {
  const std::string text = std::to_string(::getpid()) + "\n";
  // Errors are ignored: the text is informational, and the lock does not depend on it.
  if (::ftruncate(fd, 0) != 0 || ::pwrite(fd, text.data(), text.size(), 0) < 0) return;
}

}  // namespace

Result<OwnedFd> acquire_instance_lock(const std::string &path) {
  // Retries if another process replaces the file between open() and flock().
  constexpr int attempts = 10;
  for (int i = 0; i < attempts; ++i) {
    OwnedFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600));
    if (!fd) return fail(BH_E_IO, describe_errno("lock file " + path, errno));
    struct stat info{};
    if (::fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode)) {
      return fail(BH_E_INVALID, "lock file " + path + ": not a regular file");
    }
    if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno == EWOULDBLOCK) return OwnedFd();
      return fail(BH_E_IO, describe_errno("lock file " + path, errno));
    }
    if (!is_file_at(fd.get(), path)) continue;
    stamp(fd.get());
    return fd;
  }
  return fail(BH_E_IO, "lock file " + path + ": another process keeps replacing the file");
}

}  // namespace bulkhead::program
