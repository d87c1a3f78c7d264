#include "supervisor/compartment_process.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/owned_fd.hpp"
#include "compartment/control.hpp"
#include "embed/policy_watch.hpp"

namespace bulkhead::program {
namespace {

bool pass_on(posix_spawn_file_actions_t *actions, int fd, int as) {
  return ::posix_spawn_file_actions_adddup2(actions, fd, as) == 0;
}

}  // namespace

int spawn_compartment(const std::string &name, bool stdio, int control, int request, int log,
                      pid_t *pid) {
  // Duplicates the descriptors to numbers above those that the new process uses for them.
  OwnedFd high[3];
  const int low[3] = {control, request, log};
  for (int i = 0; i < 3; ++i) high[i] = OwnedFd(::fcntl(low[i], F_DUPFD_CLOEXEC, 16));
  if (!high[0] || !high[1] || !high[2]) return errno;
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  if (!stdio) {
    ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    ::posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  }
  pass_on(&actions, high[2].get(), STDERR_FILENO);
  pass_on(&actions, high[0].get(), control::control_fd);
  pass_on(&actions, high[1].get(), control::request_fd);
  pass_on(&actions, high[2].get(), control::log_fd);
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  // The process is put in its own process group, so that Ctrl-C in the terminal reaches only the
  // supervisor.
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  std::string arguments[] = {"bulkhead", "compartment", name};
  char *const argv[] = {arguments[0].data(), arguments[1].data(), arguments[2].data(), nullptr};
  const int error = ::posix_spawn(pid, "/proc/self/exe", &actions, &attributes, argv, environ);
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&actions);
  return error;
}

bool ended_by_crash(int status) {
  if (!WIFSIGNALED(status)) return false;
  switch (WTERMSIG(status)) {
    case SIGSEGV:
    case SIGBUS:
    case SIGILL:
    case SIGFPE:
    case SIGABRT:
    case SIGTRAP:
    case SIGSYS:
      return true;
    default:
      return false;
  }
}

std::string describe_end(int status) {
  if (WIFSIGNALED(status)) {
    const char *name = ::sigabbrev_np(WTERMSIG(status));
    return std::string("was killed by SIG") + (name == nullptr ? "?" : name);
  }
  const int code = WEXITSTATUS(status);
  std::string text = "exited with code " + std::to_string(code);
  if (code == exit_policy_hangs) text += ": a policy in it did not return";
  return text;
}

std::uint64_t resident_bytes(int pid) {
  const OwnedFd fd(
      ::open(("/proc/" + std::to_string(pid) + "/statm").c_str(), O_RDONLY | O_CLOEXEC));
  char text[128] = {};
  if (!fd || ::read(fd.get(), text, sizeof text - 1) <= 0) return 0;
  unsigned long long total = 0, resident = 0;
  if (std::sscanf(text, "%llu %llu", &total, &resident) != 2) return 0;
  return resident * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

// On Linux 6.2 and later, the size of /proc/PID/fd is the number of descriptors and can be read
// without permission to list the directory (proc_pid_fd(5)). If a process is not dumpable, not even
// the user that owns it can list the directory.
std::uint32_t count_descriptors(int pid) {
  const std::string path = "/proc/" + std::to_string(pid) + "/fd";
  struct stat about{};
  if (::stat(path.c_str(), &about) == 0 && about.st_size > 0) {
    return static_cast<std::uint32_t>(about.st_size);
  }
  DIR *folder = ::opendir(path.c_str());
  if (folder == nullptr) return 0;
  std::uint32_t count = 0;
  while (const dirent *entry = ::readdir(folder)) count += entry->d_name[0] != '.' ? 1 : 0;
  ::closedir(folder);
  return count;
}

}  // namespace bulkhead::program
