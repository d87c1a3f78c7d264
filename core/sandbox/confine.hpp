// Confines one gateway process. The confinement is set once, before the process reads untrusted
// input. It cannot be relaxed afterwards, even by code that has compromised the process.
//
// Order for a compartment: open and check files -> close_other_descriptors() -> clear_environment()
// -> confine() -> map plugins -> read. docs/threat-model.md describes what each part protects
// against.
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

// The reaction to a part that the kernel does not support: `require` fails, `best_effort` reports
// the part as missing.
enum class ConfineMode : std::uint8_t { require, best_effort };

struct PathRule {
  enum class Access : std::uint8_t {
    read,          // files and folders below the path
    read_execute,  // also execute programs there (for exec roles)
    read_write,    // also create, change and remove files and folders; no device nodes
    device,        // read and write an existing device file, for example /dev/null
  };
  std::string path;  // used if `fd` < 0; a nonexistent path gets no rule
  int fd = -1;       // used instead of the path; borrowed until confine() returns
  Access access = Access::read;
};

// The parts of a confinement. Tests omit some of them to show the effect of each part.
struct ConfineLayers {
  bool limits = true, namespaces = true, identity = true, process = true, landlock = true,
       seccomp = true;
};

struct Confinement {
  std::string role;  // for error messages, for example "endpoint"

  // Allowed paths; Landlock rejects all others. They are opened before the user id changes, so the
  // new user does not need access to their parent folders.
  //
  // With `namespaces`, an empty list means that there are no file rules: a Landlock domain with
  // file rules cannot mount anything, so a role that builds mount namespaces for its children uses
  // `hide` instead.
  std::vector<PathRule> paths;
  // With `namespaces`: paths that an empty folder or file masks in a private mount namespace.
  // Children cannot unmask them, even in their own user namespaces. Nonexistent paths are skipped.
  std::vector<std::string> hide;

  // If false, the process gets an empty network namespace (inherited sockets still work), socket()
  // fails except for socketpairs of type stream and seqpacket, and Landlock rejects TCP.
  bool network = false;
  // With `network`, the TCP ports to which connections are allowed; empty means every port. The
  // kernel filters only TCP ports. It does not filter addresses or UDP (which name resolution
  // needs).
  std::vector<std::uint16_t> connect_ports;
  // Whether the process may also create Unix sockets. If so, it can connect to any Unix socket that
  // file modes allow.
  bool unix_sockets = false;

  bool exec = false;        // may start programs, which inherit the confinement
  bool namespaces = false;  // may create namespaces and mounts (with `exec`)
  bool debuggers = false;   // with `exec`: started programs may ptrace each other

  // A limit of 0 leaves the current limit unchanged.
  std::uint64_t memory_bytes = 0;  // private writable memory
  std::uint64_t descriptors = 0;
  // Limit for the number of this user's processes and threads (in this user namespace). Reported as
  // missing if the user's other programs would also be counted.
  std::uint64_t processes = 0;
  std::uint64_t file_bytes = 0;  // size of one written file; writes beyond it fail with EFBIG

  // The user and group ids to which the process switches if it runs as root; otherwise ignored.
  std::optional<std::pair<uid_t, gid_t>> ids;
  ConfineMode mode = ConfineMode::best_effort;
  ConfineLayers layers;
};

// Short stable identifiers for `status`: no-new-privs, no-capabilities, user, not-dumpable,
// network-namespace, mount-namespace, landlock-files, landlock-truncate, landlock-ioctl,
// landlock-tcp, landlock-scopes, no-writable-code, seccomp, limits, memory-limit, process-limit.
struct Enforced {
  std::vector<std::string> in_force, missing;
};

// Confines the calling process, which must be single-threaded. After an error, the process is
// partly confined and must end. With `require`, returns BH_E_UNSUPPORTED and lists the parts that
// the kernel does not support. In both modes, returns BH_E_IO if a step fails that every kernel
// supports.
//
// For an ordinary user, a network or mount namespace or a process limit requires a user namespace
// that maps only this user. In it, files of root and of other users appear to belong to user 65534.
//
// After confine(), the process is not dumpable: its files in /proc belong to root, so a child that
// writes its uid_map must make itself dumpable first. Sanitizer builds get no seccomp filter and no
// memory limit, and stay dumpable, because the sanitizer's run-time requires this. These parts are
// reported as missing.
Result<Enforced> confine(const Confinement &confinement);

// Returns paths that code loaded later needs: shared libraries, /dev/null, random numbers, time
// zones.
std::vector<PathRule> library_paths();
// Returns paths that name resolution and certificate verification need.
std::vector<PathRule> network_config_paths();

// Closes every descriptor except 0, 1, 2 and those in `keep`. Async-signal-safe, except that it
// sorts a copy of `keep`.
void close_other_descriptors(std::span<const int> keep);

// Clears the environment and overwrites the strings that the kernel shows in /proc/PID/environ.
// Pointers returned by getenv() become invalid. The process must be single-threaded.
void clear_environment();

}  // namespace bulkhead
