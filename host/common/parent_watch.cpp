#include "common/parent_watch.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "common/paths.hpp"

namespace bulkhead::program {

Result<OwnedFd> watch_parent(pid_t parent) {
  if (::getppid() != parent) return OwnedFd();
  OwnedFd fd(static_cast<int>(::syscall(SYS_pidfd_open, parent, 0)));
  const int error = errno;
  // If the parent exited before pidfd_open(), its PID may have been reused.
  if (::getppid() != parent) return OwnedFd();
  if (!fd)
    return fail(BH_E_IO, describe_errno("cannot watch the parent process (pidfd_open)", error));
  return fd;
}

}  // namespace bulkhead::program
