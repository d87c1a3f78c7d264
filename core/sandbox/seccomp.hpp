// System-call filters, assembled without a library.
//
// libseccomp is not used: the required part takes only 150 lines, every compartment would map the
// library (about 0.2 MB of dirty memory and a millisecond of start time each), and its database
// covers only calls known at its release. The kernel caches which calls are always allowed, so a
// filter has no overhead for calls whose arguments it does not check.
#pragma once

#include <linux/filter.h>

#include <cstdint>
#include <vector>

#include "base/result.hpp"

namespace bulkhead {

struct SeccompOptions {
  bool network = false;       // socket(), connect(), bind()
  bool unix_sockets = false;  // also Unix sockets
  // Whether the process may start processes and programs. If so, all calls except dangerous ones
  // are allowed.
  bool exec = false;
  bool namespaces = false;  // with exec: namespaces, mounts
  bool debuggers = false;   // with exec: ptrace and reading other processes' memory
  // FICLONE and syncfs, for reflink copies and durable writes.
  bool clones_files = false;
};

// Returns a role's filter. A role that does not start programs gets an allow-list. Other calls fail
// with EPERM. Calls newer than this list fail with ENOSYS so that libraries fall back to older
// calls. clone3 also fails with ENOSYS because a filter cannot read its arguments. Calls that use
// another architecture's calling convention terminate the process.
std::vector<sock_filter> seccomp_program(const SeccompOptions &options);

// Applies the filter permanently to all threads; requires no_new_privs. Async-signal-safe. Returns
// 0 or an errno value.
int seccomp_install(const sock_filter *program, std::size_t n) noexcept;

}  // namespace bulkhead
