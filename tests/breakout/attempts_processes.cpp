#include <fcntl.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "attempts.hpp"

namespace breakout {
namespace {

std::string proc(const Target &t, const char *file) {
  return "/proc/" + std::to_string(t.sibling) + "/" + file;
}

int read_proc(const Target &t, const char *file) {
  const int fd = ::open(proc(t, file).c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return errno;
  char byte;
  const ssize_t n = ::read(fd, &byte, 1);
  const int error = n == 1 ? 0 : n < 0 ? errno : ENODATA;
  ::close(fd);
  return error;
}

int read_memory(const Target &t) {
  char secret[secret_size];
  iovec mine{secret, sizeof secret};
  iovec theirs{reinterpret_cast<void *>(t.sibling_secret), sizeof secret};
  const ssize_t n = ::process_vm_readv(t.sibling, &mine, 1, &theirs, 1, 0);
  return n == static_cast<ssize_t>(sizeof secret) ? 0 : n < 0 ? errno : EIO;
}

int read_mem_file(const Target &t) {
  const int fd = ::open(proc(t, "mem").c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return errno;
  char secret[secret_size];
  const ssize_t n = ::pread(fd, secret, sizeof secret, static_cast<off_t>(t.sibling_secret));
  const int error = n < 0 ? errno : 0;
  ::close(fd);
  return error;
}

int read_environment(const Target &t) {
  return read_proc(t, "environ");
}
int read_maps(const Target &t) {
  return read_proc(t, "maps");
}

int list_descriptors(const Target &t) {
  char to[64];
  return ::readlink(proc(t, "fd/0").c_str(), to, sizeof to) >= 0 ? 0 : errno;
}

// Process 1 is that of the machine. In a server's sandbox, it is a process of the gateway.
int open_first_memory(const Target &) {
  const int fd = ::open("/proc/1/mem", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return errno;
  ::close(fd);
  return 0;
}

int take_descriptor(const Target &t) {
  const long pidfd = ::syscall(__NR_pidfd_open, t.sibling, 0U);
  if (pidfd < 0) return errno;
  const long fd = ::syscall(__NR_pidfd_getfd, pidfd, 0, 0U);
  const int error = fd < 0 ? errno : 0;
  if (fd >= 0) ::close(static_cast<int>(fd));
  ::close(static_cast<int>(pidfd));
  return error;
}

int trace(const Target &t) {
  if (::ptrace(PTRACE_SEIZE, t.sibling, nullptr, nullptr) != 0) return errno;
  ::ptrace(PTRACE_DETACH, t.sibling, nullptr, nullptr);
  return 0;
}

// Signal 0 only checks the permission.
int signal_sibling(const Target &t) {
  return ::kill(t.sibling, 0) == 0 ? 0 : errno;
}
int signal_thread(const Target &t) {
  return ::syscall(__NR_tgkill, t.sibling, t.sibling, 0) == 0 ? 0 : errno;
}
int signal_by_pidfd(const Target &t) {
  const long pidfd = ::syscall(__NR_pidfd_open, t.sibling, 0U);
  if (pidfd < 0) return errno;
  const int error = ::syscall(__NR_pidfd_send_signal, pidfd, 0, nullptr, 0U) == 0 ? 0 : errno;
  ::close(static_cast<int>(pidfd));
  return error;
}

int start_program(const Target &) {
  const pid_t child = ::fork();
  if (child < 0) return errno;
  if (child == 0) {
    char name[] = "true";
    char *words[] = {name, nullptr};
    ::execv("/bin/true", words);
    ::_exit(errno);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : EINTR;
}

// Does not fork, so on success the process becomes `true` and exits with status 0.
int become_program(const Target &) {
  char name[] = "true";
  char *words[] = {name, nullptr};
  ::execv("/bin/true", words);
  return errno;
}

// Returns an error if setuid() succeeds but the user does not change.
int become_root(const Target &) {
  if (::setuid(0) != 0) return errno;
  return ::geteuid() == 0 ? 0 : EPERM;
}

}  // namespace

void add_process_attempts(std::vector<Attempt> *all) {
  all->insert(all->end(), {{"read a sibling's memory (process_vm_readv)", read_memory},
                           {"read a sibling's memory (/proc/PID/mem)", read_mem_file},
                           {"read a sibling's environment", read_environment},
                           {"read a sibling's memory map", read_maps},
                           {"list a sibling's descriptors", list_descriptors},
                           {"open the memory of process 1", open_first_memory},
                           {"take a sibling's descriptor (pidfd_getfd)", take_descriptor},
                           {"ptrace a sibling", trace},
                           {"signal a sibling (kill)", signal_sibling},
                           {"signal a sibling (tgkill)", signal_thread},
                           {"signal a sibling (pidfd)", signal_by_pidfd},
                           {"start a program", start_program},
                           {"become another program", become_program},
                           {"become root", become_root}});
}

}  // namespace breakout
