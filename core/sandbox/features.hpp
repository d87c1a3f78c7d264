// The confinement features of the running system. Each is tried rather than derived from a
// version: a container's filter or a distribution's setting may disable a feature of the kernel.
#pragma once

#include <string>
#include <vector>

namespace bulkhead {

struct Features {
  int landlock = 0;  // ABI version; 0: none
  bool seccomp = false;
  // Each for this user: in a user namespace where that is required.
  bool user_namespaces = false, network_namespaces = false, pid_namespaces = false,
       mount_namespaces = false, ipc_namespaces = false, uts_namespaces = false;
  bool no_writable_code = false;  // PR_SET_MDWE
  bool pidfd = false;
  bool cgroups = false;  // sub-groups can be created in this process's group (version 2)
};

// Starts short-lived children that try each feature, about a millisecond each, without effects
// outside of them. Thread: control; no other thread may wait for children during the call.
Features probe_features();

// One line per feature: "landlock: ABI 7", "seccomp: yes".
std::vector<std::string> to_lines(const Features &features);

}  // namespace bulkhead
