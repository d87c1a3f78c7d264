// The individual steps of confine(). Each returns 0 or an errno value; the caller decides whether a
// failed step aborts the start or is reported as missing.
//
// The process must be single-threaded.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace bulkhead::steps {

// Creates private namespaces. For an ordinary user, they are in a user namespace that maps only
// this user. `flags` contains CLONE_NEW* flags without CLONE_NEWUSER. Afterwards, the process may
// have capabilities in these namespaces.
struct Isolated {
  int error = 0;
  bool user_namespace = false;
};
Isolated own_namespaces(int flags);
int own_user_namespace();  // creates only the user namespace

// Hides paths in a private mount namespace. Changes do not propagate outside, and each path is
// covered by an empty, read-only, inaccessible folder or by /dev/null.
int hide_paths(const std::vector<std::string> &paths);

int become(uid_t user, gid_t group);  // sets all ids and drops all supplementary groups; root only
// Prevents programs from regaining capabilities; has no effect without capabilities.
int drop_bounding_set();
int drop_capabilities(std::uint64_t keep);  // drops the other capability sets, except these bits

// Lowers the soft and hard limits; a limit that is already lower is kept.
int limit(int resource, std::uint64_t value);

}  // namespace bulkhead::steps
