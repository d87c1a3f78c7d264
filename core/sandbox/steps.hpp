// Implements the individual steps of confine(). Each function reports an errno value, or 0 on
// success; the caller decides whether a failed step aborts the start or is reported as missing.
//
// The process must be single-threaded.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace bulkhead::steps {

// Creates private namespaces. `flags` contains CLONE_NEW* flags other than CLONE_NEWUSER. For an
// ordinary user, the namespaces are created in a user namespace that maps only this user.
// Afterwards, the process may have capabilities in these namespaces.
struct Isolated {
  int error = 0;
  bool user_namespace = false;
};
Isolated own_namespaces(int flags);
int own_user_namespace();  // creates only the user namespace

// Hides paths in the current mount namespace, which must be private to this process. Each path is
// masked by /dev/null or by an empty, read-only, inaccessible folder. Skips nonexistent paths.
// Mount changes do not propagate to other namespaces.
int hide_paths(const std::vector<std::string> &paths);

int become(uid_t user, gid_t group);  // sets all IDs and drops all supplementary groups; root only
// Prevents executed programs from regaining capabilities. Has no effect on a process without
// capabilities.
int drop_bounding_set();
// Clears all capability sets other than the bounding set. The permitted and effective sets keep the
// bits in `keep`.
int drop_capabilities(std::uint64_t keep);

// Sets the soft and hard limits to `value`, or to the current hard limit if that is lower.
int limit(int resource, std::uint64_t value);

}  // namespace bulkhead::steps
