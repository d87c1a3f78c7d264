#include "sandbox/orphans.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/owned_fd.hpp"

namespace bulkhead {
namespace {

// Returns a process's parent from /proc/PID/stat: "PID (name) state PARENT ...". The name may
// contain any character. /proc/PID/task/TID/children would be simpler to use, but not every kernel
// provides it.
pid_t parent_process_of(const std::string &pid) {
  std::ifstream file("/proc/" + pid + "/stat");
  std::string text;
  std::getline(file, text, '\0');
  const std::size_t name_end = text.rfind(')');
  if (name_end == std::string::npos || name_end + 4 > text.size()) return 0;
  return static_cast<pid_t>(std::strtol(text.c_str() + name_end + 4, nullptr, 10));
}

std::vector<pid_t> children() {
  std::vector<pid_t> out;
  const pid_t self = ::getpid();
  std::error_code error;
  for (const auto &entry : std::filesystem::directory_iterator("/proc", error)) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    if (parent_process_of(name) == self) out.push_back(static_cast<pid_t>(std::atol(name.c_str())));
  }
  return out;
}

// Kills and reaps a child. Returns false if the child does not exit in time. Using the pid is safe:
// it cannot be reused before the child is reaped, and only this function reaps the child.
bool end(pid_t pid) {
  const OwnedFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  ::kill(pid, SIGKILL);
  pollfd ended{pidfd.get(), POLLIN, 0};
  if (pidfd) ::poll(&ended, 1, orphan_wait_ms);
  siginfo_t info{};
  return ::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG) == 0 && info.si_pid != 0;
}

}  // namespace

std::size_t kill_children(const std::function<bool(pid_t)> &chosen) {
  std::size_t ended = 0;
  for (int round = 0; round < orphan_rounds; ++round) {
    const std::size_t before = ended;
    for (const pid_t pid : children()) {
      if (chosen(pid) && end(pid)) ++ended;
    }
    if (ended == before) break;
  }
  return ended;
}

}  // namespace bulkhead
