#include <fcntl.h>
#include <linux/keyctl.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/timex.h>
#include <termios.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "attempts.hpp"

namespace breakout {
namespace {

int closed(long fd) {
  if (fd < 0) return errno;
  ::close(static_cast<int>(fd));
  return 0;
}

int io_uring(const Target &) {
  alignas(8) unsigned char parameters[120]{};
  return closed(::syscall(__NR_io_uring_setup, 4U, parameters));
}
int bpf(const Target &) {
  alignas(8) unsigned char attributes[72]{};
  const std::uint32_t array_map[] = {2, 4, 4, 1};
  std::memcpy(attributes, array_map, sizeof array_map);
  return closed(::syscall(__NR_bpf, 0, attributes, sizeof attributes));
}
int userfaultfd(const Target &) {
  return closed(::syscall(__NR_userfaultfd, O_CLOEXEC | 1 /* UFFD_USER_MODE_ONLY */));
}
int perf(const Target &) {
  alignas(8) unsigned char attributes[112]{};
  const std::uint32_t type_and_size[] = {1 /* software */, sizeof attributes};
  std::memcpy(attributes, type_and_size, sizeof type_and_size);
  return closed(::syscall(__NR_perf_event_open, attributes, 0, -1, -1, 0UL));
}
int keys(const Target &) {
  const char payload[] = "x";
  const long id = ::syscall(__NR_add_key, "user", "breakout", payload, sizeof payload,
                            KEY_SPEC_PROCESS_KEYRING);
  return id < 0 ? errno : 0;
}
int user_namespace(const Target &) {
  return ::unshare(CLONE_NEWUSER) == 0 ? 0 : errno;
}
int mount_something(const Target &t) {
  if (::mount("none", t.scratch.c_str(), "tmpfs", 0, nullptr) != 0) return errno;
  ::umount2(t.scratch.c_str(), MNT_DETACH);
  return 0;
}
int load_module(const Target &) {
  return ::syscall(__NR_finit_module, -1, "", 0) == 0 ? 0 : errno;
}
int other_root(const Target &) {
  return ::chroot("/tmp") == 0 ? 0 : errno;
}
// Sets the clock to its current time, so nothing changes on success.
int set_clock(const Target &) {
  timex clock{};
  clock.modes = 0;
  if (::adjtimex(&clock) < 0) return errno;
  clock.modes = ADJ_TICK;
  return ::adjtimex(&clock) >= 0 ? 0 : errno;
}
int type_into_terminal(const Target &) {
  char key = 'x';
  const int fd = ::open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
  const int terminal = fd < 0 ? 0 : fd;
  const int error = ::ioctl(terminal, TIOCSTI, &key) == 0 ? 0 : errno;
  if (fd >= 0) ::close(fd);
  return error;
}
int writable_code(const Target &) {
  void *page = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return errno;
  const int error = ::mprotect(page, 4096, PROT_READ | PROT_EXEC) == 0 ? 0 : errno;
  ::munmap(page, 4096);
  return error;
}
int dumpable(const Target &) {
  return ::prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) == 0 ? 0 : errno;
}

}  // namespace

void add_kernel_attempts(std::vector<Attempt> *all) {
  all->insert(all->end(), {{"io_uring", io_uring},
                           {"bpf", bpf},
                           {"userfaultfd", userfaultfd},
                           {"perf_event_open", perf},
                           {"kernel keys", keys},
                           {"user namespace", user_namespace},
                           {"mount", mount_something},
                           {"load a kernel module", load_module},
                           {"chroot", other_root},
                           {"set the clock", set_clock},
                           {"type into a terminal (TIOCSTI)", type_into_terminal},
                           {"run code that was written (W^X)", writable_code},
                           {"become dumpable again", dumpable}});
}

}  // namespace breakout
