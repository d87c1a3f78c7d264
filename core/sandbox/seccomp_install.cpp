#include <linux/seccomp.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "sandbox/seccomp.hpp"

namespace bulkhead {

int seccomp_install(const sock_filter *program, std::size_t n) noexcept {
  const sock_fprog code{static_cast<unsigned short>(n), const_cast<sock_filter *>(program)};
  const long rc =
      ::syscall(__NR_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &code);
  if (rc == 0) return 0;
  return rc > 0 ? ESRCH : errno;  // positive: the ID of a thread that could not be synchronized
}

}  // namespace bulkhead
