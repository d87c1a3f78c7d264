// A sandboxed server's system call filter.
#pragma once

#include <linux/filter.h>

namespace bulkhead {

// Rejects, with EPERM, system calls that servers do not need and attacks use: mounts, joining
// namespaces, io_uring, BPF, userfaultfd, keys, kernel modules, performance counters, clocks,
// TIOCSTI, and calls of another architecture. `strict` also rejects tracing, reading other
// processes' memory, and creating user namespaces. Without `network`, only Unix, IPv4, IPv6 and
// netlink (route) sockets can be created; other families fail with EAFNOSUPPORT. The result is
// read-only and valid until the program exits.
const sock_fprog &child_filter(bool strict, bool network) noexcept;

}  // namespace bulkhead
