// The confinement of one process of the gateway. It is set once, before the process reads
// untrusted input, and cannot be widened afterwards, not even by code that compromised the
// process.
//
// Order for a compartment: open and check files -> close_other_descriptors() -> clear_environment()
// -> confine() -> map plugins -> read. docs/threat-model.md describes what each part protects from.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/result.hpp"

namespace bulkhead {

// The reaction to a part that the kernel lacks: `require` fails, `best_effort` reports it as
// missing.
enum class ConfineMode : std::uint8_t { require, best_effort };

struct PathRule {
  enum class Access : std::uint8_t {
    read,          // files and folders below
    read_execute,  // also execute programs there (exec roles)
    read_write,    // also create, change and remove files and folders; no device nodes
    device,        // read and write an existing device file, e.g. /dev/null
  };
  std::string path;  // used if `fd` < 0; a path that does not exist gets no rule
  int fd = -1;       // used instead of the path; borrowed until confine() returns
  Access access = Access::read;
};

// The parts of a confinement. Tests omit some to show the effect of each alone.
struct ConfineLayers {
  bool limits = true, namespaces = true, identity = true, process = true, landlock = true,
       seccomp = true;
};

struct Confinement {
  std::string role;  // for error texts, e.g. "endpoint"

  // Allowed paths; Landlock rejects everything else. They are opened before the user changes, so
  // the new user needs no access to the parent folders.
  //
  // With `namespaces` an empty list means "no file rules": a Landlock domain with file rules cannot
  // mount anything, so a role that builds mount namespaces for its children uses `hide` instead.
  std::vector<PathRule> paths;
  // With `namespaces`: paths covered by something empty in a private mount namespace. Children
  // cannot uncover them, not even in their own user namespaces. Paths that do not exist are
  // skipped.
  std::vector<std::string> hide;

  // False: an empty network namespace (inherited sockets still work), no socket() except
  // socketpairs of type stream and seqpacket, no TCP by Landlock.
  bool network = false;
  // With `network`: the TCP ports that may be connected to; empty: every port. The kernel filters
  // TCP ports only, neither addresses nor UDP (which name resolution needs).
  std::vector<std::uint16_t> connect_ports;
  // May also create Unix sockets and so connect to any that file modes allow.
  bool unix_sockets = false;

  bool exec = false;        // may start programs, which inherit the confinement
  bool namespaces = false;  // may create namespaces and mounts (with `exec`)
  bool debuggers = false;   // with `exec`: started programs may ptrace each other

  // 0: unchanged.
  std::uint64_t memory_bytes = 0;  // private writable memory
  std::uint64_t descriptors = 0;
  // Processes and threads of this user (in this user namespace). Reported as missing if the user's
  // other programs would count too.
  std::uint64_t processes = 0;
  std::uint64_t file_bytes = 0;  // size of one written file; writes beyond it fail with EFBIG

  // The user and group to become as root; ignored otherwise.
  std::optional<std::pair<uid_t, gid_t>> ids;
  ConfineMode mode = ConfineMode::best_effort;
  ConfineLayers layers;
};

// Short stable words for `status`: no-new-privs, no-capabilities, user, not-dumpable,
// network-namespace, mount-namespace, landlock-files, landlock-truncate, landlock-ioctl,
// landlock-tcp, landlock-scopes, no-writable-code, seccomp, limits, memory-limit, process-limit.
struct Enforced {
  std::vector<std::string> in_force, missing;
};

// Thread: the only one of the process. After an error the process is partly confined and must end.
// BH_E_UNSUPPORTED: `require`, and the kernel lacks the parts that the text lists. BH_E_IO: a step
// failed that every kernel supports, in either mode.
//
// For an ordinary user, a network or mount namespace or a process limit requires a user namespace
// that maps this user only: files of root and of other users appear to belong to 65534 in it.
//
// Afterwards the process is not dumpable: its files in /proc belong to root, so a child that writes
// its uid_map makes itself dumpable first. Builds with a sanitizer get no seccomp filter and no
// memory limit, and stay dumpable, because the sanitizer's run-time needs that; these parts are
// reported as missing.
Result<Enforced> confine(const Confinement &confinement);

// Paths that later loaded code needs: shared libraries, /dev/null, random numbers, time zones.
std::vector<PathRule> library_paths();
// Paths that name resolution and certificate verification need.
std::vector<PathRule> network_config_paths();

// Closes every descriptor except 0, 1, 2 and `keep`. Async-signal-safe except for sorting a copy
// of `keep`.
void close_other_descriptors(std::span<const int> keep);

// Empties the environment and overwrites the strings that the kernel shows in /proc/PID/environ.
// Pointers from getenv() are invalid afterwards. Thread: the only one of the process.
void clear_environment();

}  // namespace bulkhead
