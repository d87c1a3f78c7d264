// Assembles system call filters without libseccomp.
//
// Only a small part of libseccomp would be needed, and that part takes 150 lines here. With the
// library, every compartment would have about 0.2 MB more dirty memory and would start a
// millisecond later. The library's database also covers only the calls that were known when it was
// released. The kernel caches which calls are always allowed, so a filter adds no overhead to calls
// whose arguments it does not check.
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
  // Allow FICLONE and syncfs, which are needed for reflink copies and durable writes.
  bool clones_files = false;
};

// Returns the filter for a role. A role that does not start programs gets an allow-list. Calls that
// are not on the list fail with EPERM. Calls that are newer than the list fail with ENOSYS, so
// libraries fall back to older calls. Unless `namespaces` is set, clone3() also fails with ENOSYS,
// because a filter cannot read its arguments. A call that uses another architecture's calling
// convention terminates the process.
std::vector<sock_filter> seccomp_program(const SeccompOptions &options);

// Applies the filter permanently to all threads. Requires no_new_privs. Async-signal-safe. Returns
// 0 or an errno value.
int seccomp_install(const sock_filter *program, std::size_t n) noexcept;

}  // namespace bulkhead
