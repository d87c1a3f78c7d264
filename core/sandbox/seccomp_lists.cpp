// Defines the system call list of each role. The allow-list contains the calls used by the program
// and its libraries: the core, glibc (threads, resolver, malloc), OpenSSL, libcurl, libsodium,
// SQLite.
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/sched.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <termios.h>
#include <unistd.h>

#include "sandbox/seccomp.hpp"
#include "sandbox/seccomp_rules.hpp"

namespace bulkhead {
namespace {

using seccomp::Answer;
using seccomp::CallList;

// Call numbers, which are the same on every architecture. The oldest supported headers do not
// define them.
constexpr long nr_cachestat = 451, nr_map_shadow_stack = 453, nr_last_known = 462;

constexpr std::uint32_t namespace_flags = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS |
                                          CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID |
                                          CLONE_NEWNET | CLONE_NEWTIME;
constexpr std::uint32_t socket_type_mask = 0xf;  // excludes SOCK_CLOEXEC and SOCK_NONBLOCK

seccomp::Condition is(unsigned argument, std::uint32_t value) {
  return {argument, ~0U, value};
}
seccomp::Condition high_half_is(unsigned argument, std::uint32_t value) {
  return {argument, ~0U, value, false, true};
}
seccomp::Condition is_not(unsigned argument, std::uint32_t value) {
  return {argument, ~0U, value, true};
}
seccomp::Condition bits(unsigned argument, std::uint32_t mask, std::uint32_t value) {
  return {argument, mask, value};
}
seccomp::Condition lacks_bits(unsigned argument, std::uint32_t mask) {
  return {argument, mask, mask, true};
}

std::vector<seccomp::AllOf> any_of_values(unsigned argument,
                                          std::initializer_list<std::uint32_t> values) {
  std::vector<seccomp::AllOf> out;
  for (const std::uint32_t value : values) out.push_back({is(argument, value)});
  return out;
}

void add_files(CallList &list, const SeccompOptions &options) {
  // Of these calls, Landlock checks those that open, create, remove, rename or truncate files.
  // Calls that change attributes by path are omitted, because Landlock does not check them: chmod,
  // chown, utimensat and setxattr.
  list.allow(
      {__NR_openat,    __NR_openat2,         __NR_close,           __NR_close_range, __NR_read,
       __NR_write,     __NR_readv,           __NR_writev,          __NR_pread64,     __NR_pwrite64,
       __NR_preadv,    __NR_pwritev,         __NR_preadv2,         __NR_pwritev2,    __NR_lseek,
       __NR_fstat,     __NR_newfstatat,      __NR_statx,           __NR_statfs,      __NR_fstatfs,
       __NR_faccessat, __NR_faccessat2,      __NR_readlinkat,      __NR_getdents64,  __NR_getcwd,
       __NR_chdir,     __NR_fchdir,          __NR_mkdirat,         __NR_unlinkat,    __NR_renameat,
       __NR_renameat2, __NR_linkat,          __NR_symlinkat,       __NR_ftruncate,   __NR_truncate,
       __NR_fallocate, __NR_fsync,           __NR_fdatasync,       __NR_flock,       __NR_fchmod,
       __NR_fadvise64, __NR_sync_file_range, __NR_copy_file_range, __NR_sendfile,    __NR_splice,
       __NR_getxattr,  __NR_lgetxattr,       __NR_fgetxattr,       __NR_umask,       __NR_dup,
       __NR_dup3,      __NR_pipe2,           nr_cachestat});
#if defined(__x86_64__)
  list.allow({__NR_open, __NR_stat, __NR_lstat, __NR_access, __NR_readlink, __NR_mkdir, __NR_rmdir,
              __NR_unlink, __NR_rename, __NR_link, __NR_symlink, __NR_dup2, __NR_pipe,
              __NR_getdents});
#endif
  // Rejects the commands that select which process receives readiness signals. Other fcntl commands
  // are harmless.
  list.allow_if(__NR_fcntl, {{is_not(1, F_SETOWN), is_not(1, F_SETOWN_EX), is_not(1, F_SETSIG)}});
  // Allows only the variant without a path, which futimens() uses.
  list.allow_if(__NR_utimensat, {{is(1, 0), high_half_is(1, 0)}});
  std::vector<seccomp::AllOf> controls = any_of_values(
      1, {FIONREAD, FIONBIO, FIOCLEX, FIONCLEX, TCGETS, TIOCGWINSZ, 0x8933 /* SIOCGIFINDEX */});
  if (options.clones_files) {
    controls.push_back({is(1, FICLONE)});
    list.allow({__NR_syncfs});
  }
  list.allow_if(__NR_ioctl, std::move(controls));
}

void add_waiting_and_time(CallList &list) {
  list.allow({__NR_epoll_create1,
              __NR_epoll_ctl,
              __NR_epoll_pwait,
              __NR_epoll_pwait2,
              __NR_ppoll,
              __NR_pselect6,
              __NR_eventfd2,
              __NR_timerfd_create,
              __NR_timerfd_settime,
              __NR_timerfd_gettime,
              __NR_signalfd4,
              __NR_inotify_init1,
              __NR_inotify_add_watch,
              __NR_inotify_rm_watch,
              __NR_nanosleep,
              __NR_clock_nanosleep,
              __NR_clock_gettime,
              __NR_clock_getres,
              __NR_gettimeofday,
              __NR_getitimer,
              __NR_setitimer,
              __NR_timer_create,
              __NR_timer_settime,
              __NR_timer_gettime,
              __NR_timer_getoverrun,
              __NR_timer_delete,
              __NR_times,
              __NR_restart_syscall});
#if defined(__x86_64__)
  list.allow({__NR_epoll_create, __NR_epoll_wait, __NR_poll, __NR_select, __NR_eventfd,
              __NR_signalfd, __NR_inotify_init, __NR_time, __NR_alarm, __NR_pause});
#endif
}

void add_memory_and_threads(CallList &list) {
  list.allow({__NR_munmap,
              __NR_mremap,
              __NR_mprotect,
              __NR_madvise,
              __NR_brk,
              __NR_msync,
              __NR_mlock,
              __NR_mlock2,
              __NR_munlock,
              __NR_mincore,
              nr_map_shadow_stack,
              __NR_futex,
              __NR_futex_waitv,
              __NR_set_robust_list,
              __NR_get_robust_list,
              __NR_rseq,
              __NR_membarrier,
              __NR_set_tid_address,
              __NR_sched_yield,
              __NR_sched_getaffinity,
              __NR_sched_getparam,
              __NR_sched_getscheduler,
              __NR_sched_get_priority_min,
              __NR_sched_get_priority_max,
              __NR_getcpu,
              __NR_exit,
              __NR_exit_group});
#if defined(__x86_64__)
  list.allow({__NR_arch_prctl});
#endif
  // Reject anonymous shared memory, because it does not count towards the memory limit.
  list.allow_if(__NR_mmap, {{lacks_bits(3, MAP_SHARED | MAP_ANONYMOUS)}});
  // Allows pthread_create() to create threads, but does not allow new processes.
  list.allow_if(__NR_clone,
                {{bits(0, CLONE_THREAD | CLONE_VM | namespace_flags, CLONE_THREAD | CLONE_VM)}});
  list.allow_if(__NR_prctl, any_of_values(0, {PR_SET_NAME, PR_GET_NAME, PR_SET_PDEATHSIG,
                                              PR_GET_PDEATHSIG, PR_GET_DUMPABLE,
                                              PR_GET_NO_NEW_PRIVS, PR_GET_SECCOMP, PR_CAPBSET_READ,
                                              PR_SET_TIMERSLACK, 0x53564d41 /* PR_SET_VMA */}));
}

void add_self(CallList &list) {
  list.allow({__NR_getpid,       __NR_getppid,       __NR_gettid,          __NR_getuid,
              __NR_geteuid,      __NR_getgid,        __NR_getegid,         __NR_getresuid,
              __NR_getresgid,    __NR_getgroups,     __NR_getpgid,         __NR_getsid,
              __NR_uname,        __NR_sysinfo,       __NR_getrusage,       __NR_getrandom,
              __NR_getpriority,  __NR_capget,        __NR_rt_sigaction,    __NR_rt_sigprocmask,
              __NR_rt_sigreturn, __NR_rt_sigpending, __NR_rt_sigtimedwait, __NR_rt_sigsuspend,
              __NR_sigaltstack});
#if defined(__x86_64__)
  list.allow({__NR_getpgrp, __NR_getrlimit});
#endif
  // A process may only read its own limits, not change them or read those of others.
  list.allow_if(__NR_prlimit64, {{is(0, 0), is(2, 0), high_half_is(2, 0)}});
  // A process may send signals only to itself, for abort(), raise() and thread cancellation.
  const auto self = static_cast<std::uint32_t>(::getpid());
  list.allow_if(__NR_kill, {{is(0, self)}});
  list.allow_if(__NR_tgkill, {{is(0, self)}});
}

void add_sockets(CallList &list, const SeccompOptions &options) {
  list.allow({__NR_recvfrom, __NR_recvmsg, __NR_recvmmsg, __NR_shutdown, __NR_getsockname,
              __NR_getpeername, __NR_getsockopt, __NR_accept, __NR_accept4, __NR_listen});
  // Reject MSG_FASTOPEN, which opens a connection by sending data and thereby bypasses Landlock's
  // port check. Otherwise, a process could shut down an inherited listening socket and use it to
  // connect.
  list.allow_if(__NR_sendto, {{lacks_bits(3, MSG_FASTOPEN)}});
  list.allow_if(__NR_sendmsg, {{lacks_bits(2, MSG_FASTOPEN)}});
  list.allow_if(__NR_sendmmsg, {{lacks_bits(3, MSG_FASTOPEN)}});
  // Rejects packet filter programs, which run in the kernel.
  list.allow_if(__NR_setsockopt,
                {{is_not(1, SOL_SOCKET)},
                 {is_not(2, SO_ATTACH_FILTER), is_not(2, SO_ATTACH_BPF),
                  is_not(2, SO_ATTACH_REUSEPORT_CBPF), is_not(2, SO_ATTACH_REUSEPORT_EBPF)}});
  // Rejects datagram pairs, which can be connected to any Unix socket in the file system.
  list.allow_if(__NR_socketpair, {{is(0, AF_UNIX), bits(1, socket_type_mask, SOCK_STREAM)},
                                  {is(0, AF_UNIX), bits(1, socket_type_mask, SOCK_SEQPACKET)}});
  if (!options.network && !options.unix_sockets) return;
  list.allow({__NR_connect, __NR_bind});
  std::vector<seccomp::AllOf> families;
  if (options.network) {
    for (const std::uint32_t family : {AF_INET, AF_INET6}) {
      // Allows only TCP (explicit or default) and UDP. Landlock does not filter the ports of other
      // protocols, such as MPTCP and SCTP.
      for (const std::uint32_t protocol : {0, int{IPPROTO_TCP}}) {
        families.push_back(
            {is(0, family), bits(1, socket_type_mask, SOCK_STREAM), is(2, protocol)});
      }
      for (const std::uint32_t protocol : {0, int{IPPROTO_UDP}}) {
        families.push_back({is(0, family), bits(1, socket_type_mask, SOCK_DGRAM), is(2, protocol)});
      }
    }
    // getaddrinfo() lists the addresses of the machine through netlink.
    families.push_back({is(0, AF_NETLINK), is(2, 0)});
  }
  if (options.unix_sockets) families.push_back({is(0, AF_UNIX)});
  list.allow_if(__NR_socket, std::move(families));
}

// The list for the launcher and for the third-party servers that it starts, which inherit the
// filter. It allows all calls except those that only attackers and debuggers need.
CallList everything_but_dangerous(const SeccompOptions &options) {
  CallList list;
  list.otherwise = Answer::allow;
  list.last_known = nr_last_known;
  list.refuse({__NR_io_uring_setup,
               __NR_io_uring_enter,
               __NR_io_uring_register,
               __NR_bpf,
               __NR_userfaultfd,
               __NR_perf_event_open,
               __NR_keyctl,
               __NR_add_key,
               __NR_request_key,
               __NR_kexec_load,
               __NR_init_module,
               __NR_finit_module,
               __NR_delete_module,
               __NR_reboot,
               __NR_swapon,
               __NR_swapoff,
               __NR_settimeofday,
               __NR_clock_settime,
               __NR_adjtimex,
               __NR_clock_adjtime,
               __NR_acct,
               __NR_quotactl,
               __NR_quotactl_fd,
               __NR_syslog,
               __NR_vhangup,
               __NR_open_by_handle_at,
               __NR_fanotify_init,
               __NR_fanotify_mark,
               __NR_migrate_pages,
               __NR_move_pages,
               __NR_pidfd_getfd,
               __NR_kcmp});
#if defined(__x86_64__)
  list.refuse({__NR_iopl, __NR_ioperm, __NR_modify_ldt, __NR_uselib, __NR_ustat, __NR_sysfs,
               __NR_kexec_file_load});
#endif
  if (!options.debuggers) {
    list.refuse({__NR_ptrace, __NR_process_vm_readv, __NR_process_vm_writev});
  }
  // Prevents the process from injecting characters into a terminal, where they would appear as the
  // user's input.
  list.allow_if(__NR_ioctl, {{is_not(1, TIOCSTI), is_not(1, TIOCLINUX)}});
  if (!options.namespaces) {
    list.refuse({__NR_unshare, __NR_setns, __NR_mount, __NR_umount2, __NR_pivot_root,
                 __NR_move_mount, __NR_mount_setattr, __NR_open_tree, __NR_fsopen, __NR_fsconfig,
                 __NR_fsmount, __NR_fspick, __NR_chroot, __NR_sethostname, __NR_setdomainname});
    list.allow_if(__NR_clone, {{bits(0, namespace_flags, 0)}});
    list.calls[__NR_clone3] = {Answer::unknown, {}};
  }
  return list;
}

CallList listed_only(const SeccompOptions &options) {
  CallList list;
  list.otherwise = Answer::refuse;
  list.last_known = nr_last_known;
  add_files(list, options);
  add_waiting_and_time(list);
  add_memory_and_threads(list);
  add_self(list);
  add_sockets(list, options);
  list.calls[__NR_clone3] = {Answer::unknown, {}};
  return list;
}

}  // namespace

std::vector<sock_filter> seccomp_program(const SeccompOptions &options) {
  return seccomp::assemble(options.exec ? everything_but_dangerous(options) : listed_only(options));
}

}  // namespace bulkhead
