// System-call filters, assembled without a library.
//
// libseccomp is not used: the needed part takes 150 lines, every compartment would map the library
// (about 0.2 MB of dirty memory each and a millisecond at the start), and its database ends at the
// calls known to its release. The kernel caches which calls are always allowed, so a filter has no
// overhead for calls whose arguments it does not check.
#pragma once

#include <linux/filter.h>

#include <cstdint>
#include <vector>

#include "base/result.hpp"

namespace bulkhead {

struct SeccompOptions {
  bool network = false;       // socket(), connect(), bind()
  bool unix_sockets = false;  // also Unix sockets
  // May start processes and programs: all calls except dangerous ones are allowed.
  bool exec = false;
  bool namespaces = false;  // with exec: namespaces, mounts
  bool debuggers = false;   // with exec: ptrace and reading other processes' memory
  // FICLONE and syncfs: copies of files that share blocks, and durable writes.
  bool clones_files = false;
};

// A role that starts no programs gets an allow-list. Other calls fail with EPERM. Calls newer than
// this list, and clone3, whose arguments a filter cannot read, fail with ENOSYS, so that libraries
// use older calls. Calls under the convention of another architecture end the process.
std::vector<sock_filter> seccomp_program(const SeccompOptions &options);

// Applies to all threads permanently; requires no_new_privs. Async-signal-safe. Returns 0 or an
// errno value.
int seccomp_install(const sock_filter *program, std::size_t n) noexcept;

}  // namespace bulkhead
