// Runs a child from clone() until it executes its program. During that time, the child uses the
// parent's memory. Internal to core/sandbox; the public interface is spawn.hpp.
//
// Each start creates two processes. The first process builds the file system view if namespaces are
// available, and then executes child_init.c. The second process executes the server.
#pragma once

#include <linux/filter.h>
#include <sys/types.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>

#include "sandbox/mount_kind.hpp"

namespace bulkhead {

enum class SpawnStep : int {
  none,
  clone,
  identity,  // writing the ID maps of the user namespace
  ipc,       // creating an IPC or UTS namespace
  mounts,    // making the mount namespace private and read-only
  view,      // applying one mount of the plan
  network,
  limits,
  privileges,
  landlock,
  filter,
  folder,
  descriptors,
  program,
  init
};

// Returns true for errors by which the kernel reports that it, or its configuration, does not
// support or permit something. Other errors may be temporary: for example, a server may have used
// up a resource.
constexpr bool means_unsupported(int error) noexcept {
  return error == EPERM || error == EACCES || error == EINVAL || error == ENOSYS ||
         error == EOPNOTSUPP || error == EAFNOSUPPORT || error == EROFS || error == ENOENT ||
         error == EUSERS;
}

// One change to the file system view. The changes in a plan are applied in order.
struct ChildMount {
  using Kind = MountKind;
  Kind kind = Kind::bind;
  const char *path = nullptr;  // the mount target; no component is a symbolic link
  // For bind: the path to mount; for link: the target of the link.
  const char *source = nullptr;
  const ChildMount *mirror = nullptr;  // for entry: the mirror that contains the entry
  bool writable = false;               // for bind
  bool folder = true;                  // for bind and entry: whether the source is a folder
  bool make = false;                   // whether the mount target may have to be created
  // For empty_folder: whether later steps create targets in this folder. Always true for mirrors.
  bool holds = false;
  // Whether the start continues if the kernel does not permit this step.
  bool optional = false;
  // Whether the start also fails if the path is missing or inaccessible, because the mount protects
  // a path from the server. Other mounts only make their path accessible.
  bool needed = false;
  // Set by the child. For bind: a clone of the source; for mirror: the mirrored folder.
  int tree = -1;
  int error = 0;  // the errno value if `tree` could not be opened
};

// A control group that the child creates and enters in one cgroup hierarchy; see
// ServerGroups::Part. A null limit means no limit.
struct ChildGroup {
  int parent = -1;  // -1: no group
  const char *folder = nullptr, *procs = nullptr;
  const char *processes_file = nullptr, *processes = nullptr;
  const char *memory_file = nullptr, *memory = nullptr;
};
// Creates the group and enters it. Descendants inherit the group. Returns false and sets errno on
// failure.
bool enter_group(const ChildGroup &group) noexcept;

// The progress of a start. Before `identified`, the child's pid is unknown and the child
// temporarily changes the gateway's dumpable flag, so only one start may be in this phase.
// At `viewed`, all steps that the kernel might not support have succeeded. At `over`, both programs
// are running or the start has failed, and the child no longer uses the plan.
enum class SpawnPhase : std::uint32_t { begun, identified, viewed, over };

// The input and the results of a start. All data that the child uses is prepared in advance because
// the child cannot allocate memory. Pointers are borrowed.
struct ChildPlan {
  static constexpr std::size_t most_kept = 8;
  // The signal that tells child_init.c to kill all of the server's processes. Used only outside a
  // PID namespace.
  static constexpr int end_all = SIGUSR1;

  const char *program = nullptr;
  char *const *argv = nullptr;
  char *const *envp = nullptr;
  const char *cwd = nullptr;        // null: the parent's working directory
  bool cwd_given = false;           // false: if the directory is inaccessible, "/" is used
  bool make_cwd = false;            // with namespaces: create `cwd` in a scratch folder
  int in = -1, out = -1, err = -1;  // each above 2

  ChildGroup groups[2];
  bool groups_needed = false;  // if false, the start continues without the groups

  bool namespaces = false;
  bool own_network = false;  // with namespaces
  bool own_ipc = false;      // with namespaces
  // If true, the start fails if an IPC or UTS namespace cannot be created, even if the kernel does
  // not support or permit it.
  bool ipc_needed = false;
  bool ipc_limit_is_zero = false;  // whether an administrator has forbidden one of the namespaces
  // Returns true if this error from creating an IPC or UTS namespace will recur at later starts.
  bool lacks_ipc(int number) const noexcept {
    return means_unsupported(number) || (number == ENOSPC && ipc_limit_is_zero);
  }
  const char *uid_map = nullptr, *gid_map = nullptr;
  ChildMount *mounts = nullptr;
  std::size_t mount_count = 0;
  const char *scratch_options = nullptr;  // mount options of tmpfs
  int init_image = -1, exit_report = -1;

  // If true, apply the members up to `processes`, drop all capabilities and set no_new_privs. If
  // false, apply only memory_bytes.
  bool confined = false;
  int landlock = -1;                // a ruleset, or -1
  bool writable_processes = false;  // whether /proc is writable, as far as the kernel permits
  const sock_fprog *filter = nullptr;
  std::uint64_t memory_bytes = 0, processes = 0;  // 0: unchanged; processes: with namespaces

  pid_t parent = 0;
  // The descriptors above 2 that the child needs, in ascending order. The child first closes all
  // others, because they may be connections that belong to other parts of the program.
  int kept[most_kept] = {};
  std::size_t kept_count = 0;
  void *first_stack = nullptr, *second_stack = nullptr;  // the upper ends of the stacks

  // Results, written by the child (pidfd: by the kernel).
  std::atomic<std::uint32_t> phase{0};  // SpawnPhase; a futex
  int pidfd = -1;                       // valid from phase `identified` onwards
  // The pid as the parent sees it, or 0 if unknown. Valid from phase `identified` onwards.
  pid_t pid = -1;
  volatile SpawnStep failed = SpawnStep::none;
  volatile int error = 0;
  const char *volatile what = nullptr;  // the mount target, or `cwd`, at which the start failed
  volatile int processes_error = 0;     // the errno value if /proc could not be mounted
  volatile bool groups_failed = false;
  // The errno values of namespaces that could not be created.
  volatile int ipc_error = 0, uts_error = 0;
  // The pid of the second process while that process uses the gateway's memory, otherwise 0. The
  // kernel clears it. If the first process is killed during a start, the kernel resumes the parent
  // immediately, so the parent must also wait until this value is 0.
  std::atomic<pid_t> second{0};
  static_assert(sizeof(std::atomic<pid_t>) == sizeof(pid_t));

  // Used only by Spawner and Starters.
  std::uint64_t child = 0;
  ChildPlan *next = nullptr;
};

// Starts the child. Returns when both the server's program and child_init.c are running, or after a
// failure. Does not set the phase `over`. `pid` and `pidfd` are those of the first process. If
// `pidfd` is not -1, the caller must reap the process, even after a failure.
//
// All signals are blocked during the call. The kernel kills the child when the calling thread
// exits, so that thread must live as long as the child should. Other threads continue to run during
// the call.
void start_child(ChildPlan *plan) noexcept;

// reach() sets the phase of a start. wait_for() blocks until a start has reached a phase. Both
// functions are thread-safe.
void reach(ChildPlan *plan, SpawnPhase phase) noexcept;
void wait_for(ChildPlan &plan, SpawnPhase phase) noexcept;

}  // namespace bulkhead
