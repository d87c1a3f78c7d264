// The system call filter for sandboxed servers.
#pragma once

#include <linux/filter.h>

namespace bulkhead {

// Returns a filter that rejects system calls that attacks use and servers do not need. The
// following fail with EPERM: mounting, joining namespaces, io_uring, BPF, userfaultfd, keys, kernel
// modules, performance counters, setting clocks, TIOCSTI, and calls made through another
// architecture's ABI. `strict` also rejects tracing, reading other processes' memory, unshare() and
// new user namespaces. Without `network`, only Unix, IPv4, IPv6 and netlink (route) sockets can be
// created; other families fail with EAFNOSUPPORT. The returned filter is read-only and valid until
// the program exits.
const sock_fprog &child_filter(bool strict, bool network) noexcept;

}  // namespace bulkhead
