// Confines a gateway process. A process is confined once, before it reads untrusted input. Nothing
// can relax the confinement afterwards, not even code that has compromised the process.
//
// A compartment follows this order: open and check files -> close_other_descriptors() ->
// clear_environment() -> confine() -> map plugins -> read input. docs/threat-model.md describes
// what each part protects against.
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

// What confine() does if the kernel does not support part of a confinement: with `require`, it
// fails; with `best_effort`, it reports the part as missing.
enum class ConfineMode : std::uint8_t { require, best_effort };

struct PathRule {
  enum class Access : std::uint8_t {
    read,          // read files and list folders below the path
    read_execute,  // also execute programs there (for exec roles)
    read_write,    // read, create, change and remove files and folders; no device nodes
    device,        // read and write an existing device file, for example /dev/null
  };
  std::string path;  // used if `fd` < 0; ignored if it does not exist or is inaccessible
  int fd = -1;       // used instead of `path`; borrowed until confine() returns
  Access access = Access::read;
  bool links = true;  // false: `path` is ignored if it contains symbolic links
};

// The parts of a confinement. Tests omit some of them to show the effect of each part.
struct ConfineLayers {
  bool limits = true, namespaces = true, identity = true, process = true, landlock = true,
       seccomp = true;
};

struct Confinement {
  std::string role;  // for error messages, for example "endpoint"

  // The paths that the process may access; Landlock rejects access to all others. They are opened
  // before the user ID changes, so the new user does not need access to their parent folders.
  //
  // With `namespaces`, an empty list means that file access is not restricted. A process in a
  // Landlock domain with file rules cannot mount anything, so a role that builds mount namespaces
  // for its children uses `hide` instead.
  std::vector<PathRule> paths;
  // Paths to hide; used only with `namespaces`. An empty folder or file masks each path in a
  // private mount namespace. Children cannot unmask them, even in their own user namespaces.
  // Nonexistent paths are skipped.
  std::vector<std::string> hide;

  // If false, the process gets an empty network namespace, and Landlock rejects TCP. Inherited
  // sockets still work. Without `exec`, socket() fails (except for Unix sockets, if allowed below)
  // and socketpair() creates only stream and seqpacket pairs.
  bool network = false;
  // The TCP ports to which the process may connect; used only with `network`. If empty, all ports
  // are allowed. The kernel does not restrict addresses, nor does it restrict UDP, which name
  // resolution needs.
  std::vector<std::uint16_t> connect_ports;
  // Whether the process may also create Unix sockets. If so, it can connect to any Unix socket
  // whose file permissions allow it.
  bool unix_sockets = false;

  bool exec = false;        // may start programs, which inherit the confinement
  bool namespaces = false;  // may create namespaces and mounts (with `exec`)
  bool debuggers = false;   // with `exec`: started programs may ptrace each other

  // A limit of 0 leaves the current limit unchanged.
  std::uint64_t memory_bytes = 0;  // private writable memory
  std::uint64_t descriptors = 0;
  // Maximum number of this user's processes and threads (in this user namespace). The limit is not
  // set, and is reported as missing, if it would also count the user's other programs.
  std::uint64_t processes = 0;
  std::uint64_t file_bytes = 0;  // maximum size of a written file; writes beyond it fail with EFBIG

  // The user and group IDs that the process switches to if it runs as root; otherwise ignored.
  std::optional<std::pair<uid_t, gid_t>> ids;
  ConfineMode mode = ConfineMode::best_effort;
  ConfineLayers layers;
};

// The parts of a confinement that are in force and those that are missing. Each part is a short,
// stable identifier for `status`: no-new-privs, no-capabilities, user, not-dumpable,
// network-namespace, mount-namespace, landlock-files, landlock-truncate, landlock-ioctl,
// landlock-tcp, landlock-scopes, no-writable-code, seccomp, limits, memory-limit, process-limit.
struct Enforced {
  std::vector<std::string> in_force, missing;
};

// Confines the calling process, which must be single-threaded. After an error, the process is
// partly confined and must exit. With `require`, returns BH_E_UNSUPPORTED and lists the parts that
// the kernel does not support. In both modes, returns BH_E_IO if a step that every kernel supports
// fails.
//
// For an ordinary user, a network namespace, a mount namespace or a process limit requires a user
// namespace that maps only this user. In this namespace, files of root and of other users appear to
// belong to user 65534.
//
// After confine(), the process is not dumpable. Its files in /proc belong to root, so a child that
// writes its uid_map must first make itself dumpable. In sanitizer builds, the process has no
// seccomp filter and no memory limit, and stays dumpable, because the sanitizer's runtime requires
// this. These parts are then reported as missing.
Result<Enforced> confine(const Confinement &confinement);

// Returns the paths needed by code that is loaded later: shared libraries, /dev/null, sources of
// random numbers, and time zone data.
std::vector<PathRule> library_paths();
// Returns the paths needed for name resolution and certificate verification.
std::vector<PathRule> network_config_paths();

// Closes all descriptors except 0, 1, 2 and those in `keep`. Not async-signal-safe, because it
// allocates a copy of `keep`.
void close_other_descriptors(std::span<const int> keep);

// Clears the environment and overwrites the strings that the kernel shows in /proc/PID/environ.
// Pointers returned by getenv() become invalid. The process must be single-threaded.
void clear_environment();

}  // namespace bulkhead
