// The confinement of one process of ours: what it may reach is said once, before it sees the first
// byte from outside, and cannot be widened afterwards, neither by us nor by code that took us over.
//
// Order for a compartment: open and check files -> close_other_descriptors() -> clear_environment()
// -> confine() -> map plugins -> read. docs/threat-model.md says what each part is worth.
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

// What happens when the kernel lacks a part: `require` fails, `best_effort` lists it as missing.
enum class ConfineMode : std::uint8_t { require, best_effort };

struct PathRule {
  enum class Access : std::uint8_t {
    read,          // files and folders below
    read_execute,  // and programs there may be started (exec roles)
    read_write,    // and files and folders may be made, changed and removed; no device nodes
    device,        // an existing file is opened to read and write, e.g. /dev/null
  };
  std::string path;  // with `fd` < 0. One that does not exist gets no rule
  int fd = -1;       // instead of a path; borrowed until confine() returns
  Access access = Access::read;
};

// The parts of a confinement. Leaving some out is for tests, which show what each is worth alone.
struct ConfineLayers {
  bool limits = true, namespaces = true, identity = true, process = true, landlock = true,
       seccomp = true;
};

struct Confinement {
  std::string role;  // for error texts, e.g. "endpoint"

  // Everything else on the file system is refused (Landlock). Opened while the process still is who
  // it was, so folders on the way need not be open to the new user.
  //
  // With `namespaces` an empty list means "no file rules": such a domain could not mount anything,
  // so a role that builds mount namespaces for its children uses `hide` instead.
  std::vector<PathRule> paths;
  // With `namespaces`: covered by something empty in a mount namespace of our own. Children cannot
  // uncover them, not even in user namespaces of theirs. Ones that do not exist are skipped.
  std::vector<std::string> hide;

  // False: an empty network namespace (inherited sockets go on working), no socket() but
  // socketpairs of streams and packets, no TCP by Landlock.
  bool network = false;
  // With `network`: TCP goes to these ports only; empty: to every port. The kernel filters ports,
  // not addresses, and neither UDP (which name resolution needs).
  std::vector<std::uint16_t> connect_ports;
  bool unix_sockets = false;  // may also make Unix sockets, so connect to any that file modes allow

  bool exec = false;        // may start programs; they inherit everything in here
  bool namespaces = false;  // may create namespaces and mounts (with `exec`)
  bool debuggers = false;   // with `exec`: programs below may ptrace each other

  // 0: leave as it is.
  std::uint64_t memory_bytes = 0;  // private writable memory
  std::uint64_t descriptors = 0;
  std::uint64_t processes = 0;   // of this user (in this user namespace), threads included;
                                 // missing where the user's other programs would count, too
  std::uint64_t file_bytes = 0;  // size of one file that is written; beyond: EFBIG

  std::optional<std::pair<uid_t, gid_t>> ids;  // become these when root; ignored otherwise
  ConfineMode mode = ConfineMode::best_effort;
  ConfineLayers layers;
};

// Short stable words for `status`: no-new-privs, no-capabilities, user, not-dumpable,
// network-namespace, mount-namespace, landlock-files, landlock-truncate, landlock-ioctl,
// landlock-tcp, landlock-scopes, no-writable-code, seccomp, limits, memory-limit, process-limit.
struct Enforced {
  std::vector<std::string> in_force, missing;
};

// Thread: the only one of the process. After an error the process is confined in part and must end.
// BH_E_UNSUPPORTED: `require`, and the kernel lacks what the text lists. BH_E_IO: a step that every
// kernel has failed, in either mode.
//
// An ordinary user's network or mount namespace, or process limit, comes with a user namespace that
// knows this user only: there, files of root and of everybody else seem to belong to 65534.
//
// Afterwards the process is not dumpable: its files in /proc belong to root, so a child that wants
// to write its uid_map makes itself dumpable first. Builds with a sanitizer get no seccomp filter,
// no memory limit and stay dumpable, because its run-time needs more; they report that as missing.
Result<Enforced> confine(const Confinement &wish);

// What code that is loaded later needs: shared libraries, /dev/null, random numbers, time zones.
std::vector<PathRule> library_paths();
// And what looking up names and checking certificates needs.
std::vector<PathRule> network_config_paths();

// Closes everything but 0, 1, 2 and `keep`. Async-signal-safe but for the sorting of a copy.
void close_other_descriptors(std::span<const int> keep);

// An empty environment, and the strings that the kernel shows in /proc/PID/environ overwritten.
// Pointers from getenv() dangle afterwards. Thread: the only one of the process.
void clear_environment();

}  // namespace bulkhead
