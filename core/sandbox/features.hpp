// The running system's confinement features. Each feature is tested rather than derived from a
// version: a container's filter or a distribution's setting may disable a kernel feature.
#pragma once

#include <string>
#include <vector>

namespace bulkhead {

struct Features {
  int landlock = 0;  // ABI version; 0 if unavailable
  bool seccomp = false;
  // Each value applies to this user, in a user namespace if one is required.
  bool user_namespaces = false, network_namespaces = false, pid_namespaces = false,
       mount_namespaces = false, ipc_namespaces = false, uts_namespaces = false;
  bool no_writable_code = false;  // PR_SET_MDWE
  bool pidfd = false;
  bool cgroups = false;  // whether subgroups can be created in this process's group (version 2)
};

// Starts a short-lived child process for each feature. This takes about a millisecond and has no
// effect outside the child. Runs on the control thread. During the call, no other thread may wait
// for child processes.
Features probe_features();

// Returns one line per feature: "landlock: ABI 7", "seccomp: yes".
std::vector<std::string> to_lines(const Features &features);

}  // namespace bulkhead
