#include "sandbox/features.hpp"

#include <linux/seccomp.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>

#include "base/owned_fd.hpp"
#include "sandbox/landlock.hpp"

namespace bulkhead {
namespace {

// Returns true if `attempt` succeeds in a child process. `attempt` may make only system calls.
bool works(bool (*attempt)()) {
  const pid_t child = ::fork();
  if (child < 0) return false;
  if (child == 0) ::_exit(attempt() ? 0 : 1);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return false;
  }
  return status == 0;
}

bool unshared(int flags) noexcept {
  return ::unshare(flags) == 0 || ::unshare(flags | CLONE_NEWUSER) == 0;
}

bool can_mount() noexcept {
  // Some systems create the namespace but grant no privileges in it, so this also tries to change a
  // mount.
  return unshared(CLONE_NEWNS) && ::mount(nullptr, "/", nullptr, MS_REC | MS_SLAVE, nullptr) == 0;
}

bool knows_errno_filters() noexcept {
  const std::uint32_t action = SECCOMP_RET_ERRNO;
  return ::syscall(__NR_seccomp, SECCOMP_GET_ACTION_AVAIL, 0U, &action) == 0;
}

bool can_make_groups() {
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    if (!line.starts_with("0::")) continue;
    for (const char *root : {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"}) {
      const std::string group = root + line.substr(3);
      const bool there = ::access((group + "/cgroup.procs").c_str(), W_OK) == 0;
      if (there && ::access(group.c_str(), W_OK | X_OK) == 0) return true;
    }
  }
  return false;
}

}  // namespace

Features probe_features() {
  constexpr int prctl_mdwe = 65;
  Features features;
  features.landlock = landlock_abi();
  features.seccomp = knows_errno_filters();
  features.user_namespaces = works([] { return ::unshare(CLONE_NEWUSER) == 0; });
  features.network_namespaces = works([] { return unshared(CLONE_NEWNET); });
  features.pid_namespaces = works([] { return unshared(CLONE_NEWPID); });
  features.mount_namespaces = works(can_mount);
  features.ipc_namespaces = works([] { return unshared(CLONE_NEWIPC); });
  features.uts_namespaces = works([] { return unshared(CLONE_NEWUTS); });
  features.no_writable_code = works([] { return ::prctl(prctl_mdwe, 1UL, 0, 0, 0) == 0; });
  features.pidfd = OwnedFd(static_cast<int>(::syscall(__NR_pidfd_open, ::getpid(), 0U))).get() >= 0;
  features.cgroups = can_make_groups();
  return features;
}

std::vector<std::string> to_lines(const Features &features) {
  const auto yes = [](bool there) { return there ? std::string("yes") : std::string("no"); };
  return {
      "landlock: " +
          (features.landlock > 0 ? "ABI " + std::to_string(features.landlock) : std::string("no")),
      "seccomp: " + yes(features.seccomp),
      "user namespaces: " + yes(features.user_namespaces),
      "network namespaces: " + yes(features.network_namespaces),
      "pid namespaces: " + yes(features.pid_namespaces),
      "mount namespaces: " + yes(features.mount_namespaces),
      "ipc namespaces: " + yes(features.ipc_namespaces),
      "uts namespaces: " + yes(features.uts_namespaces),
      "no writable code: " + yes(features.no_writable_code),
      "pidfd: " + yes(features.pidfd),
      "cgroups: " + yes(features.cgroups),
  };
}

}  // namespace bulkhead
