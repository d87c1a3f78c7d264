// A child process from the clone to its program: the part that runs between two programs, on the
// memory of the parent. Internal to core/sandbox; spawn.hpp is the front door.
//
// There are two processes: the first one builds the view, where there are namespaces, and becomes
// child_init.c; the second becomes the server.
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
  identity,  // the user namespace's maps
  ipc,       // an IPC or UTS namespace
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

// One change of what the child sees, in the order of the list.
struct ChildMount {
  // As ViewStep::Kind, which says what they are.
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
  const char *path = nullptr;    // where; no component is a link
  const char *source = nullptr;  // of bind: what; of link: its text
  const ChildMount *mirror =
      nullptr;            // of entry: it is the entry of this name in that one's folder
  bool writable = false;  // of bind
  bool folder = true;     // of bind: else a file
  bool make = false;      // the place may have to be made first
  bool holds = false;     // of empty_folder: later steps make places in it; of each mirror
  bool optional = false;  // failing is no reason not to start
  int tree = -1;          // the child's: of bind a copy, of mirror the folder below it
};

// A control group to make and to enter, in one hierarchy; see ServerGroups::Part. Null: no bound.
struct ChildGroup {
  int parent = -1;  // -1: there is none
  const char *folder = nullptr, *procs = nullptr;
  const char *processes_file = nullptr, *processes = nullptr;
  const char *memory_file = nullptr, *memory = nullptr;
};
// For the calling process, and what it starts. False: it is in no group; errno says why.
bool enter_group(const ChildGroup &group) noexcept;

// How far a start is. Until `identified` the pid is not known and the gateway's own process is
// changed for a moment, so that only one start at a time may be there. `viewed`: past all that a
// kernel may not be able to do. `over`: both programs run, or it has failed; the plan is free
// again.
enum class SpawnPhase : std::uint32_t { begun, identified, viewed, over };

// Everything the child needs, made ready before: it allocates nothing. Pointers are borrowed.
struct ChildPlan {
  static constexpr std::size_t most_kept = 8;
  static constexpr int end_all = SIGUSR1;  // for child_init.c outside of a PID namespace

  const char *program = nullptr;
  char *const *argv = nullptr;
  char *const *envp = nullptr;
  const char *cwd = nullptr;        // null: the parent's
  bool cwd_given = false;           // else "/" will do
  bool make_cwd = false;            // with namespaces: it is to be made, in a scratch folder
  int in = -1, out = -1, err = -1;  // above 2

  ChildGroup groups[2];
  bool groups_needed = false;  // else failing is no reason not to start

  bool namespaces = false;
  bool own_network = false;  // with namespaces
  bool own_ipc = false;      // with namespaces
  bool ipc_needed = false;   // IPC and UTS namespaces; else failing is no reason not to start
  const char *uid_map = nullptr, *gid_map = nullptr;
  ChildMount *mounts = nullptr;
  std::size_t mount_count = 0;
  const char *scratch_options = nullptr;  // of tmpfs
  int init_image = -1, exit_report = -1;

  bool confined = false;            // what follows, and no new privileges
  int landlock = -1;                // a ruleset, or -1
  bool writable_processes = false;  // /proc may be written (as far as the kernel lets its owner)
  const sock_fprog *filter = nullptr;
  std::uint64_t memory_bytes = 0, processes = 0;  // 0: as they are

  pid_t parent = 0;
  int kept[most_kept] = {};    // in order: the descriptors above 2 that the child needs; it closes
  std::size_t kept_count = 0;  // the others at once, which may be somebody's connections
  void *first_stack = nullptr, *second_stack = nullptr;  // their upper ends

  // Written by the child (the kernel: pidfd); to be read when `phase` says so.
  std::atomic<std::uint32_t> phase{0};  // SpawnPhase; a futex
  int pidfd = -1;                       // from `identified` on, like pid
  pid_t pid = -1;                       // as the parent sees it; 0: not known
  volatile SpawnStep failed = SpawnStep::none;
  volatile int error = 0;
  const char *volatile what = nullptr;  // the path of a failed mount
  volatile bool processes_hidden = false;
  volatile bool groups_failed = false;
  volatile int ipc_error = 0, uts_error = 0;  // why it has no such namespace
  // The second process while it runs on the gateway's memory, else 0; the kernel sees to both. When
  // the first one is killed in the midst of a start, its parent goes on at once: it waits for this.
  std::atomic<pid_t> second{0};
  static_assert(sizeof(std::atomic<pid_t>) == sizeof(pid_t));

  // Of Spawner and Starters.
  std::uint64_t child = 0;
  ChildPlan *next = nullptr;
};

// Starts it; returns when the program runs, and child_init.c too, or has failed
// to, with `phase` still short of `over`. The pid and pidfd are those of the first process, which
// is the caller's to reap if plan->pidfd is not -1, failed or not. Blocks all signals meanwhile.
// Thread: one that lives as long as the child should; other threads go on.
void start_child(ChildPlan *plan) noexcept;

// Says that a start has come so far, and waits for one that has. Any thread.
void reach(ChildPlan *plan, SpawnPhase phase) noexcept;
void wait_for(ChildPlan &plan, SpawnPhase phase) noexcept;

}  // namespace bulkhead
