// Removes inherited descriptors and environment variables before a process is confined.
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "sandbox/confine.hpp"

extern char **environ;

namespace bulkhead {
namespace {

void close_from_to(unsigned first, unsigned last) {
  if (first > last) return;
  if (::syscall(__NR_close_range, first, last, 0U) == 0) return;
  // Fallback if close_range() does not exist (before Linux 5.9) or a filter rejects it.
  const long most = ::sysconf(_SC_OPEN_MAX);
  const unsigned end = most > 0 ? static_cast<unsigned>(most) : 65'536U;
  for (unsigned fd = first; fd <= last && fd < end; ++fd) ::close(static_cast<int>(fd));
}

}  // namespace

void close_other_descriptors(std::span<const int> keep) {
  std::vector<int> sorted(keep.begin(), keep.end());
  std::sort(sorted.begin(), sorted.end());
  unsigned next = 3;
  for (const int fd : sorted) {
    if (fd < static_cast<int>(next)) continue;
    close_from_to(next, static_cast<unsigned>(fd) - 1);
    next = static_cast<unsigned>(fd) + 1;
  }
  close_from_to(next, ~0U);
}

void clear_environment() {
  // /proc/PID/environ shows the original strings even if `environ` points elsewhere, so the strings
  // themselves are overwritten.
  for (char **entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    ::explicit_bzero(*entry, std::strlen(*entry));
  }
  ::clearenv();
}

}  // namespace bulkhead
