// This file contains the code that a new child runs between clone() and exec(). It makes system
// calls only: no allocation, no locks. The child uses the memory of its parent, whose calling
// thread is suspended (CLONE_VM | CLONE_VFORK). This avoids copying page tables, which would take
// longer than everything else, and leaves no copy of the gateway's memory in the sandbox.
//
// Without CLONE_VFORK, the child would share errno with a running thread and oom_score_adj with the
// gateway. Under memory pressure, the kernel could then kill both together.
#include "sandbox/child.hpp"

#include <fcntl.h>
#include <linux/capability.h>
#include <linux/close_range.h>
#include <linux/futex.h>
#include <linux/openat2.h>
#include <linux/seccomp.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <csignal>
#include <cstring>

#include "sandbox/landlock.hpp"

#if defined(__clang__) || defined(__GNUC__)
#define BULKHEAD_CHILD_SIDE __attribute__((no_sanitize("address", "undefined", "thread")))
#endif

namespace bulkhead {
namespace {

// The oom_score_adj of servers. Under memory pressure, the kernel kills a server before it kills
// the gateway.
constexpr const char *oom_adjustment = "500";

// Limits of a server's user namespace. The kernel also counts these objects for the user, who can
// have 128 inotify instances by default, and as many namespaces of each kind as there may be
// threads per user. Without the limits, one server could prevent all further starts.
constexpr const char *most_inotify_instances = "32", *most_inotify_watches = "32768";
constexpr const char *most_namespaces = "256";
constexpr const char *namespace_limit_files[] = {
    "/proc/sys/user/max_user_namespaces",   "/proc/sys/user/max_mnt_namespaces",
    "/proc/sys/user/max_pid_namespaces",    "/proc/sys/user/max_net_namespaces",
    "/proc/sys/user/max_ipc_namespaces",    "/proc/sys/user/max_uts_namespaces",
    "/proc/sys/user/max_cgroup_namespaces", "/proc/sys/user/max_time_namespaces"};
// A server can use 1/user_share of the user's pending signals and message queue memory.
constexpr rlim_t user_share = 4;

[[noreturn]] void child_failed(ChildPlan *plan, SpawnStep step) {
  const int number = errno;
  plan->error = number == 0 ? EINVAL : number;
  plan->failed = step;
  ::_exit(127);
}

void default_signals() {
  struct sigaction standard{};
  standard.sa_handler = SIG_DFL;
  for (int s = 1; s < NSIG; ++s) ::sigaction(s, &standard, nullptr);
}

// Closes all descriptors that the child does not need. If this process kept a copy of a connection,
// the connection would stay open even after the parent had closed it.
void close_others(const ChildPlan &plan) {
  unsigned next = 3;
  for (std::size_t i = 0; i < plan.kept_count; ++i) {
    const auto fd = static_cast<unsigned>(plan.kept[i]);
    if (fd > next) ::syscall(SYS_close_range, next, fd - 1, 0);
    next = fd + 1;
  }
  ::syscall(SYS_close_range, next, ~0u, 0);
}

// ---- identity --------------------------------------------------------------------------------

bool write_at(int folder, const char *path, const char *text) {
  const int fd = ::openat(folder, path, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const auto size = static_cast<ssize_t>(::strlen(text));
  const bool good = ::write(fd, text, static_cast<std::size_t>(size)) == size;
  ::close(fd);
  return good;
}

bool write_file(const char *path, const char *text) {
  return write_at(AT_FDCWD, path, text);
}

// Returns this process's pid as the parent sees it. The parent's /proc, which is still mounted,
// shows that pid even if this process is in a new PID namespace.
pid_t pid_for_parent() {
  char text[16];
  const ssize_t size = ::readlink("/proc/self", text, sizeof text);
  pid_t pid = 0;
  for (ssize_t i = 0; i < size; ++i) pid = pid * 10 + (text[i] - '0');
  return pid;
}

// Maps only the user's own user and group IDs into the user namespace. The /proc files of a
// non-dumpable process belong to root, so the process is made dumpable while it writes the maps.
// The flag is restored afterwards, because it belongs to the memory that this process shares with
// the gateway.
void map_identity(ChildPlan *plan) {
  const int dumpable = ::prctl(PR_GET_DUMPABLE);
  if (dumpable != 1) ::prctl(PR_SET_DUMPABLE, 1);
  const bool good = write_file("/proc/self/setgroups", "deny") &&
                    write_file("/proc/self/uid_map", plan->uid_map) &&
                    write_file("/proc/self/gid_map", plan->gid_map);
  const int number = errno;
  write_file("/proc/self/oom_score_adj", oom_adjustment);
  // These files set limits of this process's user namespace. They cannot be changed if /proc/sys is
  // read-only, as in some containers.
  write_file("/proc/sys/user/max_inotify_instances", most_inotify_instances);
  write_file("/proc/sys/user/max_inotify_watches", most_inotify_watches);
  for (const char *limit : namespace_limit_files) write_file(limit, most_namespaces);
  if (dumpable != 1) ::prctl(PR_SET_DUMPABLE, 0);
  errno = number;
  if (!good) child_failed(plan, SpawnStep::identity);
}

// ---- file system view --------------------------------------------------------------------------

int open_planned(const char *path) {
  open_how how{};
  how.flags = O_PATH | O_CLOEXEC | O_NOFOLLOW;
  // Fail if a symbolic link has replaced a component of the planned path.
  how.resolve = RESOLVE_NO_SYMLINKS;
  return static_cast<int>(::syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof how));
}

int open_tree_of(const char *path) {
  const int fd = open_planned(path);
  if (fd < 0) return -1;
  const auto tree = static_cast<int>(::syscall(
      SYS_open_tree, fd, "",
      OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH | static_cast<unsigned>(AT_RECURSIVE)));
  const int number = errno;
  ::close(fd);
  errno = number;
  return tree;
}

bool change_mount(int at, const char *path, unsigned flags, std::uint64_t set) {
  mount_attr change{};
  change.attr_set = set;
  return ::syscall(SYS_mount_setattr, at, path, flags, &change, sizeof change) == 0;
}

void make_folders(const char *path, bool whole) {
  char part[PATH_MAX];
  const std::size_t size = ::strlen(path);
  if (size >= sizeof part) return;
  ::memcpy(part, path, size + 1);
  for (std::size_t i = 1; i < size; ++i) {
    if (part[i] != '/') continue;
    part[i] = '\0';
    ::mkdir(part, 0755);
    part[i] = '/';
  }
  if (whole) ::mkdir(part, 0755);
}

void make_place(const ChildMount &mount) {
  make_folders(mount.path, mount.folder);
  if (mount.folder) return;
  const int fd = ::open(mount.path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd >= 0) ::close(fd);
}

bool place(int tree, const char *path) {
  return ::syscall(SYS_move_mount, tree, "", AT_FDCWD, path, MOVE_MOUNT_F_EMPTY_PATH) == 0;
}

bool cover_file(const char *path) {
  // Masks the file with /dev/null: reads return end-of-file, and written data is discarded.
  const int tree = open_tree_of("/dev/null");
  return tree >= 0 && place(tree, path);
}

// Allows the server to write to a folder that the child has just mounted.
void allow_writes(const ChildPlan &plan, const char *path, std::uint64_t rights) {
  if (plan.landlock < 0) return;
  const int fd = ::open(path, O_PATH | O_CLOEXEC);
  if (fd < 0) return;
  landlock_allow(plan.landlock, fd, rights);
  ::close(fd);
}

// The kernel limits the pseudoterminals of all programs together to 4096 by default.
constexpr const char *devpts_options = "ptmxmode=0666,mode=620,max=256";

bool make_devices(const ChildPlan &plan) {
  static constexpr const char *nodes[] = {"null", "zero", "full", "random", "urandom", "tty"};
  int trees[sizeof nodes / sizeof *nodes];
  char path[32] = "/dev/";
  const auto name = [&path](const char *node) { ::memcpy(path + 5, node, ::strlen(node) + 1); };
  for (std::size_t i = 0; i < sizeof nodes / sizeof *nodes; ++i) {
    name(nodes[i]);
    trees[i] = open_tree_of(path);
  }
  if (::mount("tmpfs", "/dev", "tmpfs", MS_NOSUID | MS_NOEXEC,
              "size=256m,mode=0755,nr_inodes=4096") != 0) {
    return false;
  }
  for (std::size_t i = 0; i < sizeof nodes / sizeof *nodes; ++i) {
    if (trees[i] < 0) continue;
    name(nodes[i]);
    const int fd = ::open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd >= 0) ::close(fd);
    if (!place(trees[i], path)) return false;
    ::close(trees[i]);
  }
  ::mkdir("/dev/shm", 01777);
  ::chmod("/dev/shm", 01777);
  ::mkdir("/dev/pts", 0755);
  if (::mount("devpts", "/dev/pts", "devpts", MS_NOSUID | MS_NOEXEC, devpts_options) == 0) {
    static_cast<void>(::symlink("pts/ptmx", "/dev/ptmx") == 0);
    allow_writes(plan, "/dev/pts", ll_write_file);
  }
  const bool linked = ::symlink("/proc/self/fd", "/dev/fd") == 0 &&
                      ::symlink("/proc/self/fd/0", "/dev/stdin") == 0 &&
                      ::symlink("/proc/self/fd/1", "/dev/stdout") == 0 &&
                      ::symlink("/proc/self/fd/2", "/dev/stderr") == 0;
  allow_writes(plan, "/dev", ll_write);
  return linked;
}

bool show_processes(ChildPlan *plan) {
  if (::mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr) != 0) {
    plan->processes_error = errno;
    return false;
  }
  if (plan->writable_processes) {
    allow_writes(*plan, "/proc", ll_write_file | ll_truncate);
    return true;
  }
  // Make /proc read-only. Otherwise, the server could write to files in /proc/sys, which its user
  // owns in the user namespace.
  return change_mount(AT_FDCWD, "/proc", 0, MOUNT_ATTR_RDONLY);
}

// Mounts one visible entry of a mirrored folder. Skips the entry, without an error, if it was
// removed, has changed its type, or is unreachable (on a network file system whose server is down).
bool show_entry(const ChildMount &mount) {
  const char *name = ::strrchr(mount.path, '/') + 1;
  const auto tree =
      static_cast<int>(::syscall(SYS_open_tree, mount.mirror->tree, name,
                                 OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_SYMLINK_NOFOLLOW |
                                     AT_NO_AUTOMOUNT | static_cast<unsigned>(AT_RECURSIVE)));
  if (tree < 0) return true;
  static_cast<void>(
      (mount.folder ? ::mkdir(mount.path, 0755) : ::mknod(mount.path, S_IFREG | 0600, 0)) == 0);
  static_cast<void>(place(tree, mount.path));
  ::close(tree);
  return true;
}

bool apply(ChildPlan *plan, ChildMount &mount) {
  constexpr unsigned long quiet = MS_NOSUID | MS_NODEV;
  if (mount.kind == ChildMount::Kind::entry) return show_entry(mount);
  if (mount.kind == ChildMount::Kind::link) {
    if (mount.make) make_folders(mount.path, false);
    static_cast<void>(::symlink(mount.source, mount.path) == 0);
    return true;
  }
  if (mount.make) make_place(mount);
  switch (mount.kind) {
    case ChildMount::Kind::empty_folder:
      return ::mount("tmpfs", mount.path, "tmpfs", quiet | MS_NOEXEC,
                     "size=64k,mode=0755,nr_inodes=1024") == 0 &&
             (mount.holds || change_mount(AT_FDCWD, mount.path, 0, MOUNT_ATTR_RDONLY));
    case ChildMount::Kind::mirror:
      if (::mount("tmpfs", mount.path, "tmpfs", quiet | MS_NOEXEC,
                  "size=4m,mode=0755,nr_inodes=16384") != 0) {
        return false;
      }
      errno = mount.error;
      return mount.tree >= 0;
    case ChildMount::Kind::entry:
    case ChildMount::Kind::link:
      return true;
    case ChildMount::Kind::empty_file:
      return cover_file(mount.path);
    case ChildMount::Kind::scratch: {
      if (::mount("tmpfs", mount.path, "tmpfs", quiet, plan->scratch_options) != 0) return false;
      allow_writes(*plan, mount.path, ll_write);
      return true;
    }
    case ChildMount::Kind::devices:
      return make_devices(*plan);
    case ChildMount::Kind::processes:
      return show_processes(plan);
    case ChildMount::Kind::bind:
      errno = mount.error;
      if (mount.tree < 0) return false;
      if (!mount.writable &&
          !change_mount(mount.tree, "", AT_EMPTY_PATH | AT_RECURSIVE, MOUNT_ATTR_RDONLY)) {
        return false;
      }
      return place(mount.tree, mount.path);
  }
  return false;
}

// Returns true if the start continues although this mount failed with the errno value `error`. If
// the path does not exist, there is nothing to mask or expose, and if the user may not access it,
// there is nothing to expose.
bool may_skip(const ChildMount &mount, int error) {
  if (mount.optional) return means_unsupported(error);
  if (mount.needed || mount.kind == ChildMount::Kind::scratch) return false;
  return error == ENOENT || (error == EACCES && mount.kind == ChildMount::Kind::bind);
}

// Builds the file system view: clones the sources of the planned mounts, makes everything
// read-only, and then mounts the clones.
void build_view(ChildPlan *plan) {
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) {
    child_failed(plan, SpawnStep::mounts);
  }
  for (std::size_t i = 0; i < plan->mount_count; ++i) {
    ChildMount &mount = plan->mounts[i];
    if (mount.kind == ChildMount::Kind::bind) mount.tree = open_tree_of(mount.source);
    if (mount.kind == ChildMount::Kind::mirror) mount.tree = open_planned(mount.path);
    mount.error = mount.tree < 0 ? errno : 0;
  }
  if (!change_mount(AT_FDCWD, "/", AT_RECURSIVE, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID)) {
    child_failed(plan, SpawnStep::mounts);
  }
  for (std::size_t i = 0; i < plan->mount_count; ++i) {
    ChildMount &mount = plan->mounts[i];
    if (apply(plan, mount) || may_skip(mount, errno)) continue;
    plan->what = mount.path;
    child_failed(plan, SpawnStep::view);
  }
  for (std::size_t i = 0; i < plan->mount_count; ++i) {
    const ChildMount &mount = plan->mounts[i];
    if (!mount.holds) continue;
    if (change_mount(AT_FDCWD, mount.path, 0, MOUNT_ATTR_RDONLY)) continue;
    plan->what = mount.path;
    child_failed(plan, SpawnStep::view);
  }
  if (!plan->make_cwd || ::mkdir(plan->cwd, 0700) == 0) return;
  plan->what = plan->cwd;
  child_failed(plan, SpawnStep::view);
}

void raise_loopback(ChildPlan *plan) {
  const int fd = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  ifreq request{};
  ::strcpy(request.ifr_name, "lo");
  request.ifr_flags = IFF_UP | IFF_RUNNING;
  if (fd < 0 || ::ioctl(fd, SIOCSIFFLAGS, &request) != 0) child_failed(plan, SpawnStep::network);
  ::close(fd);
}

// ---- privileges ------------------------------------------------------------------------------

void set_limit(ChildPlan *plan, int what, std::uint64_t value) {
  rlimit limit{};
  if (::getrlimit(static_cast<__rlimit_resource>(what), &limit) != 0) {
    child_failed(plan, SpawnStep::limits);
  }
  if (limit.rlim_max != RLIM_INFINITY && value > limit.rlim_max) value = limit.rlim_max;
  limit.rlim_cur = limit.rlim_max = value;
  if (::setrlimit(static_cast<__rlimit_resource>(what), &limit) != 0) {
    child_failed(plan, SpawnStep::limits);
  }
}

// The kernel counts these objects for the user. A process cannot create one while this count
// exceeds its own limit.
void set_share(ChildPlan *plan, int what) {
  rlimit limit{};
  if (::getrlimit(static_cast<__rlimit_resource>(what), &limit) != 0) {
    child_failed(plan, SpawnStep::limits);
  }
  if (limit.rlim_cur != RLIM_INFINITY) set_limit(plan, what, limit.rlim_cur / user_share);
}

// Well below the gateway's own limit. The kernel counts each user's descriptors that are in
// transit over sockets. A process cannot send descriptors while this count exceeds its own limit,
// so a server is blocked long before the gateway is.
constexpr std::uint64_t most_descriptors = 16'384;

void drop_privileges(ChildPlan *plan) {
  if (plan->memory_bytes != 0) set_limit(plan, RLIMIT_DATA, plan->memory_bytes);
  if (!plan->confined) return;
  set_limit(plan, RLIMIT_CORE, 0);
  set_limit(plan, RLIMIT_NOFILE, most_descriptors);
  set_share(plan, RLIMIT_SIGPENDING);
  set_share(plan, RLIMIT_MSGQUEUE);
  // RLIMIT_NPROC counts the user's processes in one user namespace. Without a private user
  // namespace, it would count all processes of this user.
  if (plan->namespaces && plan->processes != 0) set_limit(plan, RLIMIT_NPROC, plan->processes);
  // The loop stops with EINVAL after the last capability, or with EPERM if the process may not
  // change the bounding set.
  for (int capability = 0; ::prctl(PR_CAPBSET_DROP, capability) == 0; ++capability) {
  }
  ::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct none[2]{};
  if (::syscall(SYS_capset, &header, none) != 0 || ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
    child_failed(plan, SpawnStep::privileges);
  }
  if (plan->landlock >= 0) {
    const int error = landlock_restrict_self(plan->landlock);
    errno = error;
    if (error != 0) child_failed(plan, SpawnStep::landlock);
  }
  // The filter applies to the first process as well as to the server, so a server gains nothing by
  // compromising the first process.
  if (plan->filter != nullptr &&
      ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, plan->filter, 0, 0) != 0) {
    child_failed(plan, SpawnStep::filter);
  }
}

// Enters the control groups before the server's process is created, so that the process is counted
// in them. Runs as the user who created the parent groups; the user namespace maps this user's ID
// to itself. Changing groups can take the kernel several milliseconds (an RCU grace period) and
// blocks all other group changes, so parallel starts share the wait.
void enter_groups(ChildPlan *plan) {
  for (const ChildGroup &group : plan->groups) {
    if (group.parent < 0 || enter_group(group)) continue;
    if (plan->groups_needed) child_failed(plan, SpawnStep::limits);
    plan->groups_failed = true;
  }
}

// ---- the two processes -----------------------------------------------------------------------

BULKHEAD_CHILD_SIDE int run_server(void *arg) {
  auto *plan = static_cast<ChildPlan *>(arg);
  // The server must not outlive the first process. In a PID namespace, the kernel ensures this.
  if (!plan->namespaces) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != plan->pid) ::_exit(127);  // the first process has already exited
  }
  ::setsid();
  // Change to the working directory by its path, because the view may hide the inherited directory.
  if (plan->cwd != nullptr && ::chdir(plan->cwd) != 0) {
    if (plan->cwd_given || ::chdir("/") != 0) child_failed(plan, SpawnStep::folder);
  }
  if (::dup2(plan->in, 0) < 0 || ::dup2(plan->out, 1) < 0 || ::dup2(plan->err, 2) < 0) {
    child_failed(plan, SpawnStep::descriptors);
  }
  // Enter a nested Landlock domain. A process can inspect only processes in its own domain or in
  // nested domains. If both processes were in the same domain, the server could inspect the first
  // process while that process still uses the gateway's memory, before it executes child_init.c.
  if (plan->landlock >= 0) {
    errno = landlock_restrict_self(plan->landlock);
    if (errno != 0) child_failed(plan, SpawnStep::landlock);
  }
  // Close all other descriptors on exec, including descriptors that other code opened without
  // O_CLOEXEC.
  ::syscall(SYS_close_range, 3, ~0u, CLOSE_RANGE_CLOEXEC);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::execve(plan->program, plan->argv, plan->envp);
  child_failed(plan, SpawnStep::program);
}

// Creates each namespace with a separate unshare() call, so that one can be created even if the
// other is unavailable. The kernel removes the IPC segments and queues when the last process in the
// namespace exits.
void unshare_kernel_objects(ChildPlan *plan) {
  if (plan->own_ipc && ::unshare(CLONE_NEWIPC) != 0) plan->ipc_error = errno;
  if (::unshare(CLONE_NEWUTS) != 0) plan->uts_error = errno;
  for (const int error : {plan->ipc_error, plan->uts_error}) {
    if (error == 0 || (plan->lacks_ipc(error) && !plan->ipc_needed)) continue;
    errno = error;
    child_failed(plan, SpawnStep::ipc);
  }
}

void enter_namespaces(ChildPlan *plan) {
  map_identity(plan);
  plan->pid = pid_for_parent();
  reach(plan, SpawnPhase::identified);
  unshare_kernel_objects(plan);
  build_view(plan);
  if (plan->own_network) raise_loopback(plan);
  reach(plan, SpawnPhase::viewed);
}

void write_number(long number, char *out) {
  char digits[20];
  int count = 0;
  for (; number > 0; number /= 10) digits[count++] = static_cast<char>('0' + number % 10);
  while (count > 0) *out++ = digits[--count];
  *out = '\0';
}

[[noreturn]] void become_init(ChildPlan *plan, int server) {
  if (::dup2(plan->exit_report, 0) < 0) child_failed(plan, SpawnStep::init);
  ::syscall(SYS_close_range, 1, ~0u, CLOSE_RANGE_CLOEXEC);
  static char name[] = "bulkhead-init";
  char pid[24];  // not static: starts on several threads share the gateway's memory
  write_number(server, pid);
  char *const argv[] = {name, plan->namespaces ? nullptr : pid, nullptr};
  static char *const envp[] = {nullptr};
  ::syscall(SYS_execveat, plan->init_image, "", argv, envp, AT_EMPTY_PATH);
  child_failed(plan, SpawnStep::init);
}

BULKHEAD_CHILD_SIDE int run_first(void *arg) {
  auto *plan = static_cast<ChildPlan *>(arg);
  // Signals stay blocked until all dispositions are reset, because the parent's signal handlers
  // must not run here.
  default_signals();
  close_others(*plan);
  ::prctl(PR_SET_PDEATHSIG, plan->namespaces ? SIGKILL : ChildPlan::end_all);
  // The parent may have exited before prctl(). In a PID namespace, getppid() cannot detect this, as
  // it always returns 0. The server then reads end-of-file from its standard input.
  if (!plan->namespaces && ::getppid() != plan->parent) ::_exit(127);
  ::setsid();
  if (plan->namespaces) {
    enter_namespaces(plan);
  } else {
    // Make this process the parent of the server's orphaned descendants, including those in other
    // sessions.
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
    plan->pid = ::getpid();
    reach(plan, SpawnPhase::identified);
  }
  enter_groups(plan);
  drop_privileges(plan);
  const int server =
      ::clone(run_server, plan->second_stack,
              CLONE_VM | CLONE_VFORK | CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID | SIGCHLD, plan,
              &plan->second, nullptr, &plan->second);
  if (server < 0) child_failed(plan, SpawnStep::clone);
  if (plan->failed != SpawnStep::none) ::_exit(127);
  become_init(plan, server);
}

}  // namespace

bool enter_group(const ChildGroup &group) noexcept {
  if (::mkdirat(group.parent, group.folder, 0755) != 0) return false;
  if (group.processes != nullptr &&
      !write_at(group.parent, group.processes_file, group.processes)) {
    return false;
  }
  if (group.memory != nullptr && !write_at(group.parent, group.memory_file, group.memory)) {
    return false;
  }
  return write_at(group.parent, group.procs, "0");
}

// Waits until the second process no longer uses the gateway's memory, that is, until it has called
// execve() or exited.
static void wait_for_second(ChildPlan &plan) noexcept {
  for (;;) {
    const pid_t second = plan.second.load(std::memory_order_acquire);
    if (second == 0) return;
    // Not FUTEX_WAIT_PRIVATE: the kernel wakes this futex (CLONE_CHILD_CLEARTID) as a shared futex.
    ::syscall(SYS_futex, &plan.second, FUTEX_WAIT, second, nullptr, nullptr, 0);
  }
}

void start_child(ChildPlan *plan) noexcept {
  int flags = CLONE_VM | CLONE_VFORK | CLONE_PIDFD | SIGCHLD;
  if (plan->namespaces) flags |= CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID;
  if (plan->namespaces && plan->own_network) flags |= CLONE_NEWNET;
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  const pid_t pid = ::clone(run_first, plan->first_stack, flags, plan, &plan->pidfd);
  const int error = errno;
  if (pid >= 0) wait_for_second(*plan);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (pid >= 0) return;
  plan->pidfd = -1;
  plan->failed = SpawnStep::clone;
  plan->error = error;
}

}  // namespace bulkhead
