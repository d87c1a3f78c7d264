// Wraps the Landlock system calls: detects the kernel's features, builds a ruleset and applies it.
//
// The constants are defined here because the headers of the oldest supported systems define only
// those up to ABI 2. A ruleset restricts only the requested rights that the running kernel
// supports. The other requested rights remain unrestricted; landlock_missing() lists them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/owned_fd.hpp"
#include "base/result.hpp"

namespace bulkhead {

// Equal to LANDLOCK_ACCESS_FS_*.
inline constexpr std::uint64_t ll_execute = 1ULL << 0;
inline constexpr std::uint64_t ll_write_file = 1ULL << 1;
inline constexpr std::uint64_t ll_read_file = 1ULL << 2;
inline constexpr std::uint64_t ll_read_dir = 1ULL << 3;
inline constexpr std::uint64_t ll_remove_dir = 1ULL << 4;
inline constexpr std::uint64_t ll_remove_file = 1ULL << 5;
inline constexpr std::uint64_t ll_make_char = 1ULL << 6;
inline constexpr std::uint64_t ll_make_dir = 1ULL << 7;
inline constexpr std::uint64_t ll_make_reg = 1ULL << 8;
inline constexpr std::uint64_t ll_make_sock = 1ULL << 9;
inline constexpr std::uint64_t ll_make_fifo = 1ULL << 10;
inline constexpr std::uint64_t ll_make_block = 1ULL << 11;
inline constexpr std::uint64_t ll_make_sym = 1ULL << 12;
inline constexpr std::uint64_t ll_refer = 1ULL << 13;      // ABI 2
inline constexpr std::uint64_t ll_truncate = 1ULL << 14;   // ABI 3
inline constexpr std::uint64_t ll_ioctl_dev = 1ULL << 15;  // ABI 5

// Groups of rights for use in rules. None of them allows device nodes to be created.
inline constexpr std::uint64_t ll_read = ll_read_file | ll_read_dir;
inline constexpr std::uint64_t ll_read_execute = ll_read | ll_execute;
inline constexpr std::uint64_t ll_write = ll_write_file | ll_remove_dir | ll_remove_file |
                                          ll_make_dir | ll_make_reg | ll_make_sock | ll_make_fifo |
                                          ll_make_sym | ll_refer | ll_truncate;
inline constexpr std::uint64_t ll_read_write = ll_read | ll_write;

// Equal to LANDLOCK_ACCESS_NET_* (ABI 4).
inline constexpr std::uint64_t ll_tcp_bind = 1ULL << 0;
inline constexpr std::uint64_t ll_tcp_connect = 1ULL << 1;

// Equal to LANDLOCK_SCOPE_* (ABI 6). These scopes block connections to abstract Unix sockets and
// signals to processes outside the domain and its subdomains.
inline constexpr std::uint64_t ll_scope_abstract_sockets = 1ULL << 0;
inline constexpr std::uint64_t ll_scope_signals = 1ULL << 1;

// Returns the ABI version of the running kernel, or 0 if it does not support Landlock. The result
// is cached.
int landlock_abi() noexcept;

struct LandlockPath {
  int fd = -1;  // a file or folder (O_PATH is sufficient); borrowed
  std::uint64_t rights = 0;
};
struct LandlockPort {
  std::uint16_t port = 0;
  std::uint64_t rights = 0;  // ll_tcp_*
};

// The rights in `fs`, `net` and `scope` are denied unless a rule grants them. A process in a domain
// that restricts any `fs` right cannot mount file systems or change mounts, regardless of its
// capabilities.
struct LandlockRules {
  std::uint64_t fs = ~0ULL;
  std::uint64_t net = ll_tcp_bind | ll_tcp_connect;
  std::uint64_t scope = ll_scope_abstract_sockets | ll_scope_signals;
  std::vector<LandlockPath> paths;
  std::vector<LandlockPort> ports;
};

// Creates a ruleset for landlock_restrict_self(). The descriptor is close-on-exec. Rights that this
// kernel does not support are omitted. In a rule for a regular file, rights that apply only to
// folders are omitted as well. Returns BH_E_UNSUPPORTED if the kernel supports none of the rights
// in `fs`, `net` and `scope`, or BH_E_IO if it rejects the ruleset or a rule.
Result<OwnedFd> landlock_ruleset(const LandlockRules &rules);

// Adds a rule to a ruleset that has not been applied. `rights` must be included in the ruleset's
// LandlockRules::fs. Async-signal-safe, so that a child between fork and exec can add a rule for a
// folder that it has just mounted. Returns 0 or an errno value.
int landlock_allow(int ruleset_fd, int path_fd, std::uint64_t rights) noexcept;

// Restricts the calling thread and its children permanently. Requires no_new_privs or
// CAP_SYS_ADMIN. Async-signal-safe. Returns 0 or an errno value.
int landlock_restrict_self(int ruleset_fd) noexcept;

// Returns the requested features that a kernel with this ABI does not support, as stable
// identifiers for `status`.
std::vector<std::string> landlock_missing(const LandlockRules &rules, int abi);

}  // namespace bulkhead
