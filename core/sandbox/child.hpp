// A child process from clone until its program's exec. This code runs in the parent's memory.
// Internal to core/sandbox; the public interface is spawn.hpp.
//
// A start involves two processes. The first builds the view if namespaces are available, then
// executes child_init.c. The second executes the server.
#pragma once

#include <linux/filter.h>
#include <sys/types.h>

#include <atomic>
#include <csignal>
#include <cstddef>
#include <cstdint>

namespace bulkhead {

enum class SpawnStep : int {
  none,
  clone,
  identity,  // the id maps of the user namespace
  ipc,       // creating an IPC or UTS namespace
  mounts,    // making the mount namespace private and read-only
  view,      // one mount of the plan
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

// One change to the file system view. A plan's changes are applied in order.
struct ChildMount {
  // Must match ViewStep::Kind (child_view.hpp).
  enum class Kind : std::uint8_t {
    empty_folder,
    empty_file,
    scratch,
    devices,
    processes,
    bind,
    mirror,
    entry,
    link
  };
  Kind kind = Kind::bind;
  const char *path = nullptr;          // the target; no component is a symbolic link
  const char *source = nullptr;        // for bind: the source; for link: the text of the link
  const ChildMount *mirror = nullptr;  // for entry: the mirror whose folder contains it
  bool writable = false;               // for bind
  bool folder = true;                  // for bind: whether the source is a folder
  bool make = false;                   // whether the target may need to be created first
  // For empty_folder: whether later steps create targets in it. Always true for mirrors.
  bool holds = false;
  bool optional = false;  // if true, the start continues when the step fails
  // Set by the child: for bind, a copy of the source; for mirror, the mirrored folder.
  int tree = -1;
};

// A control group to create and enter in one hierarchy; see ServerGroups::Part. A null limit means
// no limit.
struct ChildGroup {
  int parent = -1;  // -1: no group
  const char *folder = nullptr, *procs = nullptr;
  const char *processes_file = nullptr, *processes = nullptr;
  const char *memory_file = nullptr, *memory = nullptr;
};
// Creates and enters the group. Descendants inherit it. Returns false and sets errno if the group
// was not entered.
bool enter_group(const ChildGroup &group) noexcept;

// The progress of a start. Before `identified`, the pid is unknown and the gateway's own process is
// briefly modified, so only one start may be in that phase. `viewed`: all steps that a kernel may
// not support have succeeded. `over`: both programs are running or the start has failed; the plan
// is no longer used.
enum class SpawnPhase : std::uint32_t { begun, identified, viewed, over };

// All data that the child uses, prepared in advance because the child cannot allocate memory.
// Pointers are borrowed.
struct ChildPlan {
  static constexpr std::size_t most_kept = 8;
  static constexpr int end_all = SIGUSR1;  // sent to child_init.c outside a PID namespace

  const char *program = nullptr;
  char *const *argv = nullptr;
  char *const *envp = nullptr;
  const char *cwd = nullptr;        // null: the parent's folder
  bool cwd_given = false;           // false: "/" is used if the folder is inaccessible
  bool make_cwd = false;            // with namespaces: create the folder in a scratch folder
  int in = -1, out = -1, err = -1;  // each above 2

  ChildGroup groups[2];
  bool groups_needed = false;  // if false, the start continues after a failure

  bool namespaces = false;
  bool own_network = false;  // with namespaces
  bool own_ipc = false;      // with namespaces
  // Whether IPC and UTS namespaces are required. If false, the start continues without them.
  bool ipc_needed = false;
  const char *uid_map = nullptr, *gid_map = nullptr;
  ChildMount *mounts = nullptr;
  std::size_t mount_count = 0;
  const char *scratch_options = nullptr;  // mount options of tmpfs
  int init_image = -1, exit_report = -1;

  bool confined = false;            // apply the members below and set no_new_privs
  int landlock = -1;                // a ruleset, or -1
  bool writable_processes = false;  // whether /proc is writable, as far as the kernel permits
  const sock_fprog *filter = nullptr;
  std::uint64_t memory_bytes = 0, processes = 0;  // 0: unchanged

  pid_t parent = 0;
  // The descriptors above 2 that the child needs, in ascending order. The child immediately closes
  // all others because they may be connections of other parts of the program.
  int kept[most_kept] = {};
  std::size_t kept_count = 0;
  void *first_stack = nullptr, *second_stack = nullptr;  // the upper ends of the stacks

  // Written by the child (pidfd: by the kernel). Each is valid once `phase` has reached the given
  // value.
  std::atomic<std::uint32_t> phase{0};  // SpawnPhase; a futex
  int pidfd = -1;                       // valid from `identified` onwards, like pid
  pid_t pid = -1;                       // as the parent sees it; 0: unknown
  volatile SpawnStep failed = SpawnStep::none;
  volatile int error = 0;
  const char *volatile what = nullptr;  // the path of the mount that failed
  volatile bool processes_hidden = false;
  volatile bool groups_failed = false;
  volatile int ipc_error = 0, uts_error = 0;  // errno of a namespace that could not be created
  // While the second process uses the gateway's memory, its pid; otherwise 0. The kernel clears it.
  // If the first process is killed during a start, the kernel resumes the parent immediately, so
  // the parent waits until this value is 0.
  std::atomic<pid_t> second{0};
  static_assert(sizeof(std::atomic<pid_t>) == sizeof(pid_t));

  // Used only by Spawner and Starters.
  std::uint64_t child = 0;
  ChildPlan *next = nullptr;
};

// Starts the child. Returns once the server's program and child_init.c are running, or after a
// failure; in the latter case, `phase` has not reached `over`. pid and pidfd are those of the first
// process. If plan->pidfd is not -1, the caller reaps the process, even after a failure. Blocks all
// signals during the call. Must be called on a thread that lives as long as the child should; other
// threads continue to run.
void start_child(ChildPlan *plan) noexcept;

// reach() sets a start's phase; wait_for() waits until a start has reached a phase. Thread-safe.
void reach(ChildPlan *plan, SpawnPhase phase) noexcept;
void wait_for(ChildPlan &plan, SpawnPhase phase) noexcept;

}  // namespace bulkhead
