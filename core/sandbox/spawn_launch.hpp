// Defines the state of a child that is being started. spawn_prepare.cpp fills it in before the
// process exists; from then on, spawn.cpp uses it. Internal to these two files.
#pragma once

#include <fcntl.h>

#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "sandbox/child.hpp"
#include "sandbox/child_policy.hpp"
#include "sandbox/child_view.hpp"
#include "sandbox/spawn.hpp"

namespace bulkhead {

// Owns everything to which `plan` points.
struct Spawner::Launch {
  std::string server, program, cwd;
  std::vector<std::string> arguments, environment;
  std::vector<char *> argv, envp;
  ChildPolicy policy;
  ChildView view;
  std::vector<ChildMount> mounts;
  std::string uid_map, gid_map, scratch_options, cache;
  ServerGroups::Group group;
  std::string missing_parts;  // the missing parts of the sandbox, for error messages
  OwnedFd in, out, err, child_in, child_out, child_err, exit_report, landlock;
  ChildPlan plan;

  std::string who() const {
    return "command \"" + arguments[0] + "\" of server \"" + server + "\" ";
  }
};

// Returns true if an administrator has set the limit in this file in /proc/sys to zero.
bool is_limited_to_zero(const char *file);
// Returns true if this error of a namespace step will recur at later starts, because the kernel, or
// its configuration, does not support namespaces. The kernel reports ENOSPC both if an
// administrator has set the limit for namespaces to zero and if too many exist.
bool is_lasting(int error);

// Moves a descriptor to a number above 2. Otherwise, calling dup2() for a standard descriptor could
// overwrite it or have no effect.
inline OwnedFd above_standard(int fd) {
  if (fd < 0 || fd > 2) return OwnedFd(fd);
  OwnedFd low(fd);
  return OwnedFd(::fcntl(fd, F_DUPFD_CLOEXEC, 3));
}

inline std::string incomplete_sandbox(std::string_view lacks) {
  return "is not started: isolation.mode is \"require\", and this machine lacks parts of its "
         "sandbox: " +
         std::string(lacks);
}

}  // namespace bulkhead
