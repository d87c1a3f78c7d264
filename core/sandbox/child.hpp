// A child process from the clone to its program: the part that runs between two programs, on the
// memory of the parent. Internal to core/sandbox; spawn.hpp is the front door.
//
// In namespaces there are two processes: the first one of the PID namespace builds the view and
// becomes child_init.c; the second becomes the server. Otherwise there is the server only.
#pragma once

#include <linux/filter.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>

namespace bulkhead {

enum class SpawnStep : int {
  none,
  clone,
  identity,  // the user namespace's maps
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
  enum class Kind : std::uint8_t { empty_folder, empty_file, scratch, devices, processes, bind };
  Kind kind = Kind::bind;
  const char *path = nullptr;    // where; no component is a link
  const char *source = nullptr;  // of bind: what
  bool writable = false;         // of bind
  bool folder = true;            // of bind: else a file
  bool make = false;             // the place may have to be made first
  bool holds = false;            // of empty_folder: later steps make places in it
  bool optional = false;         // failing is no reason not to start
  int tree = -1;                 // the child's
};

// Everything the child needs, made ready before: it allocates nothing. Pointers are borrowed.
struct ChildPlan {
  const char *program = nullptr;
  char *const *argv = nullptr;
  char *const *envp = nullptr;
  const char *cwd = nullptr;        // null: the parent's
  bool cwd_given = false;           // else "/" will do
  int in = -1, out = -1, err = -1;  // above 2

  // Who writes "0" to these is in the server's control groups; -1: none. Failing is no reason not
  // to start.
  int groups[2] = {-1, -1};

  bool namespaces = false;
  bool own_network = false;  // with namespaces
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
  void *first_stack = nullptr, *second_stack = nullptr;  // their upper ends

  // Written by the child.
  volatile SpawnStep failed = SpawnStep::none;
  volatile int error = 0;
  const char *volatile what = nullptr;  // the path of a failed mount
  volatile bool processes_hidden = false;
  volatile bool groups_failed = false;
};

// Starts it; returns when the program runs (and with namespaces, child_init.c too) or has failed
// to. The pid and pidfd are those of the first process. Blocks all signals meanwhile. -1: failed,
// nothing is left and plan->failed says where. Thread: one that lives as long as the child should.
pid_t start_child(ChildPlan *plan, int *pidfd) noexcept;

}  // namespace bulkhead
