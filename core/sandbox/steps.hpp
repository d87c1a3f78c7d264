// The single steps of confine(). Each returns 0 or an errno value; the caller decides whether a
// rejected step ends the start or is reported as missing.
//
// Thread: the only one of the process.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace bulkhead::steps {

// Private namespaces. For an ordinary user they are in a user namespace that maps only this user.
// `flags`: CLONE_NEW* without CLONE_NEWUSER. Afterwards the process may have capabilities in them.
struct Isolated {
  int error = 0;
  bool user_namespace = false;
};
Isolated own_namespaces(int flags);
int own_user_namespace();  // only the user namespace

// In a private mount namespace: changes do not propagate outside, and each path is covered by an
// empty, read-only, inaccessible folder or by /dev/null.
int hide_paths(const std::vector<std::string> &paths);

int become(uid_t user, gid_t group);  // sets all ids and drops all supplementary groups; root only
// Programs cannot regain capabilities; no effect without capabilities.
int drop_bounding_set();
int drop_capabilities(std::uint64_t keep);  // drops the other sets, except these bits

// Lowers the soft and hard limit; a limit that is already lower is kept.
int limit(int resource, std::uint64_t value);

}  // namespace bulkhead::steps
