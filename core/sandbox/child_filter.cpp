#include "sandbox/child_filter.hpp"

#include <linux/audit.h>
#include <linux/netlink.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace bulkhead {
namespace {

#if defined(__x86_64__)
constexpr std::uint32_t own_processor = AUDIT_ARCH_X86_64;
constexpr std::uint32_t x32_calls = 0x40000000;  // set in the call numbers of the x32 ABI
#elif defined(__aarch64__)
constexpr std::uint32_t own_processor = AUDIT_ARCH_AARCH64;
#else
#error "child_filter.cpp does not support this processor"
#endif

// Call numbers, which are the same on every architecture. The oldest supported headers do not
// define them. open_tree_attr copies mounts like open_tree.
constexpr long nr_open_tree_attr = 467;
// Calls above this number are answered with ENOSYS, as by an older kernel.
constexpr std::uint32_t last_known_call = 466;

// System calls that are always rejected. They exist on all supported architectures.
constexpr long refused_everywhere[] = {
    // Mounts
    SYS_mount,
    SYS_umount2,
    SYS_pivot_root,
    SYS_open_tree,
    nr_open_tree_attr,
    SYS_move_mount,
    SYS_fsopen,
    SYS_fsconfig,
    SYS_fsmount,
    SYS_fspick,
    SYS_mount_setattr,
    SYS_swapon,
    SYS_swapoff,
    SYS_quotactl,
    SYS_quotactl_fd,
    SYS_open_by_handle_at,
    // Joining other namespaces
    SYS_setns,
    // Kernel facilities with a large attack surface
    SYS_io_uring_setup,
    SYS_io_uring_enter,
    SYS_io_uring_register,
    SYS_bpf,
    SYS_userfaultfd,
    SYS_perf_event_open,
    SYS_add_key,
    SYS_request_key,
    SYS_keyctl,
    SYS_fanotify_init,
    SYS_lookup_dcookie,
    // Calls that affect the entire machine
    SYS_init_module,
    SYS_finit_module,
    SYS_delete_module,
    SYS_kexec_load,
    SYS_kexec_file_load,
    SYS_reboot,
    SYS_syslog,
    SYS_acct,
    SYS_settimeofday,
    SYS_clock_settime,
    SYS_adjtimex,
    SYS_clock_adjtime,
    SYS_sethostname,
    SYS_setdomainname,
    SYS_vhangup,
    SYS_nfsservctl,
#if defined(__x86_64__)
    SYS_iopl,
    SYS_ioperm,
    SYS_modify_ldt,
    SYS_uselib,
#endif
};
constexpr long refused_when_strict[] = {
    SYS_ptrace, SYS_process_vm_readv, SYS_process_vm_writev, SYS_pidfd_getfd, SYS_kcmp, SYS_unshare,
};

constexpr std::uint32_t at_number = offsetof(seccomp_data, nr);
constexpr std::uint32_t at_processor = offsetof(seccomp_data, arch);
// Returns the offset of an argument's low half. Both supported processors are little-endian.
constexpr std::uint32_t at_argument(unsigned n) {
  return offsetof(seccomp_data, args) + 8 * n;
}

class Program {
 public:
  Program(bool strict, bool network) {
    load(at_processor);
    unless(own_processor, refuse_with(EPERM));
    load(at_number);
#if defined(__x86_64__)
    code_.push_back(BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, x32_calls, 0, 1));
    code_.push_back(refuse_with(EPERM));
#endif
    for (const long number : refused_everywhere) refuse(number, EPERM);
    code_.push_back(BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, last_known_call, 0, 1));
    code_.push_back(refuse_with(ENOSYS));
    if (strict) {
      for (const long number : refused_when_strict) refuse(number, EPERM);
      // clone3() takes its flags from memory, which a filter cannot read. If it fails with ENOSYS,
      // libc falls back to clone().
      refuse(SYS_clone3, ENOSYS);
      code_.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 4));
      load(at_argument(0));
      code_.push_back(BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, CLONE_NEWUSER, 0, 1));
      code_.push_back(refuse_with(EPERM));
      load(at_number);
    }
    if (!network) restrict_socket_families();
    code_.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ioctl, 0, 3));
    load(at_argument(1));
    code_.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, TIOCSTI, 0, 1));
    code_.push_back(refuse_with(EPERM));
    code_.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
    whole_ = {static_cast<unsigned short>(code_.size()), code_.data()};
  }
  const sock_fprog &whole() const noexcept { return whole_; }

 private:
  // Allows only socket families that are confined by the network namespace. Other families bypass
  // it: vsock, for example, reaches the hypervisor and other guests from any namespace. Netlink is
  // needed by getaddrinfo() and similar functions, which query routes and addresses.
  void restrict_socket_families() {
    static constexpr std::uint32_t families[] = {AF_UNIX, AF_INET, AF_INET6};
    constexpr std::uint8_t count = sizeof families / sizeof *families;
    code_.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 1, 0));
    code_.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socketpair, 0, count + 6));
    load(at_argument(0));
    for (std::uint8_t i = 0; i < count; ++i) {
      const auto past = static_cast<std::uint8_t>(count - i + 3);
      code_.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, families[i], past, 0));
    }
    code_.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_NETLINK, 0, 2));
    load(at_argument(2));
    code_.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, NETLINK_ROUTE, 1, 0));
    code_.push_back(refuse_with(EAFNOSUPPORT));
    load(at_number);
  }

  static sock_filter refuse_with(int error) {
    return BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | static_cast<std::uint32_t>(error));
  }
  void load(std::uint32_t offset) { code_.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offset)); }
  void unless(std::uint32_t value, sock_filter then) {
    code_.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 1, 0));
    code_.push_back(then);
  }
  void refuse(long number, int error) {
    code_.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(number), 0, 1));
    code_.push_back(refuse_with(error));
  }

  std::vector<sock_filter> code_;
  sock_fprog whole_{};
};

}  // namespace

const sock_fprog &child_filter(bool strict, bool network) noexcept {
  static const Program normal(false, true), tight(true, true), alone(false, false),
      tight_alone(true, false);
  if (!network) return (strict ? tight_alone : alone).whole();
  return (strict ? tight : normal).whole();
}

}  // namespace bulkhead
