// System-call filters, assembled by hand.
//
// Not libseccomp: what is needed of it are 150 lines, every compartment would map it (about 0.2 MB
// of dirty memory each and a millisecond at the start), and its data base stops at the calls its
// release knew. The kernel caches which calls are always allowed, so a filter costs nothing on the
// calls that need no look at their arguments.
#pragma once

#include <linux/filter.h>

#include <cstdint>
#include <vector>

#include "base/result.hpp"

namespace bulkhead {

struct SeccompWish {
  bool network = false;       // socket(), connect(), bind()
  bool unix_sockets = false;  // of that kind, too
  bool exec = false;          // processes and programs: what is not named as dangerous is allowed
  bool namespaces = false;    // with exec: namespaces, mounts
  bool debuggers = false;     // with exec: ptrace and reading other processes' memory
  bool keeps_files = false;   // FICLONE, syncfs: copies of files that share blocks, and last
};

// A process that starts no programs gets an allow-list. Calls beyond it fail with EPERM, and those
// that are newer than this list (or clone3, whose arguments a filter cannot see) with ENOSYS, so
// that libraries take their older way. Calls in the convention of another architecture end the
// process.
std::vector<sock_filter> seccomp_program(const SeccompWish &wish);

// For all threads, for ever; needs no_new_privs. Async-signal-safe. 0 or an errno value.
int seccomp_install(const sock_filter *program, std::size_t n) noexcept;

}  // namespace bulkhead
