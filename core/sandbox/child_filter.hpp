// The system calls that a sandboxed server may not make.
#pragma once

#include <linux/filter.h>

namespace bulkhead {

// Refuses with EPERM what no server needs and an attacker wants: changing mounts and namespaces'
// membership, io_uring, BPF, userfaultfd, keys, kernel modules, performance counters, clocks;
// TIOCSTI; calls of another processor's table. With `strict` also tracing, reading other processes'
// memory and new user namespaces. Without `network` sockets are of the families Unix, IPv4, IPv6
// and netlink (routes) only; others fail with EAFNOSUPPORT. It lives as long as the program;
// read-only.
const sock_fprog &child_filter(bool strict, bool network) noexcept;

}  // namespace bulkhead
