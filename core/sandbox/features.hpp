// Detects the confinement features of the running system. Each feature is tested, not inferred from
// a version number, because a container's filter or a distribution's settings may disable it.
#pragma once

#include <string>
#include <vector>

namespace bulkhead {

struct Features {
  int landlock = 0;  // ABI version; 0 if unavailable
  bool seccomp = false;
  // Whether this user can create each kind of namespace, inside a user namespace if one is
  // required.
  bool user_namespaces = false, network_namespaces = false, pid_namespaces = false,
       mount_namespaces = false, ipc_namespaces = false, uts_namespaces = false;
  bool no_writable_code = false;  // PR_SET_MDWE
  bool pidfd = false;
  // Whether subgroups can be created in this process's control group (version 2).
  bool cgroups = false;
};

// Tests each feature. Tests that would change the calling process run in short-lived child
// processes. This takes about a millisecond. Must be called on the control thread. During the call,
// no other thread may wait for child processes.
Features probe_features();

// Returns one line per feature, for example "landlock: ABI 7" or "seccomp: yes".
std::vector<std::string> to_lines(const Features &features);

}  // namespace bulkhead
