// What the running system offers for confinement, tried rather than guessed from a version: a
// container's filter or a distribution's setting may forbid what the kernel knows.
#pragma once

#include <string>
#include <vector>

namespace bulkhead {

struct Features {
  int landlock = 0;  // ABI; 0: none
  bool seccomp = false;
  // Each as this user: in a user namespace where that is needed.
  bool user_namespaces = false, network_namespaces = false, pid_namespaces = false,
       mount_namespaces = false, ipc_namespaces = false, uts_namespaces = false;
  bool no_writable_code = false;  // PR_SET_MDWE
  bool pidfd = false;
  bool cgroups = false;  // our group in version 2 can be given sub-groups
};

// Starts short-lived children that try (they touch nothing outside of themselves); about a
// millisecond each. Thread: control; nobody else may wait for any child meanwhile.
Features probe_features();

// One line each, "landlock: ABI 7", "seccomp: yes".
std::vector<std::string> to_lines(const Features &features);

}  // namespace bulkhead
