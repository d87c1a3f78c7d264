// The single steps of confine(); each returns 0 or an errno value, so that the caller decides
// whether a step that a kernel refuses ends the start or is only missing.
//
// Thread: the only one of the process.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace bulkhead::steps {

// Namespaces of our own; an ordinary user gets them inside a user namespace that maps only them.
// `flags`: CLONE_NEW*, without CLONE_NEWUSER. Afterwards there may be capabilities in it.
struct Isolated {
  int error = 0;
  bool user_namespace = false;
};
Isolated own_namespaces(int flags);
int own_user_namespace();  // that one by itself

// In a mount namespace of our own: no change reaches the outside, and each path is covered by an
// empty, read-only folder without rights, or by /dev/null.
int hide_paths(const std::vector<std::string> &paths);

int become(uid_t user, gid_t group);  // all ids and no further groups; when root
int drop_bounding_set();              // no program can bring capabilities back; if there are any
int drop_capabilities(std::uint64_t keep);  // the other sets, but for these bits

// Lowers soft and hard limit; one that is lower already stays.
int limit(int resource, std::uint64_t value);

}  // namespace bulkhead::steps
