#include "sandbox/steps.hpp"

#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/owned_fd.hpp"

namespace bulkhead::steps {
namespace {

int write_file(const char *path, const std::string &text) {
  const OwnedFd fd(::open(path, O_WRONLY | O_CLOEXEC));
  if (fd.get() < 0) return errno;
  const ssize_t n = ::write(fd.get(), text.data(), text.size());
  return n == static_cast<ssize_t>(text.size()) ? 0 : n < 0 ? errno : EIO;
}

std::string to_itself(unsigned id) {
  return std::to_string(id) + " " + std::to_string(id) + " 1\n";
}

int cover(const std::string &path) {
  struct stat status{};
  if (::lstat(path.c_str(), &status) != 0) return errno == ENOENT || errno == ENOTDIR ? 0 : errno;
  if (S_ISDIR(status.st_mode)) {
    const unsigned long flags = MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC;
    const int rc = ::mount("none", path.c_str(), "tmpfs", flags, "size=4k,nr_inodes=2,mode=000");
    return rc == 0 ? 0 : errno;
  }
  return ::mount("/dev/null", path.c_str(), nullptr, MS_BIND, nullptr) == 0 ? 0 : errno;
}

int unshare_as_user(int flags) {
  const uid_t user = ::geteuid();
  const gid_t group = ::getegid();
  if (::unshare(flags | CLONE_NEWUSER) != 0) return errno;
  // The /proc files of a non-dumpable process belong to root, so the process is made dumpable while
  // it writes them.
  const int dumpable = ::prctl(PR_GET_DUMPABLE);
  if (dumpable != 1) ::prctl(PR_SET_DUMPABLE, 1);
  int error = write_file("/proc/self/setgroups", "deny");
  if (error == 0) error = write_file("/proc/self/gid_map", to_itself(group));
  if (error == 0) error = write_file("/proc/self/uid_map", to_itself(user));
  if (dumpable != 1) ::prctl(PR_SET_DUMPABLE, 0);
  return error;
}

}  // namespace

Isolated own_namespaces(int flags) {
  if (::unshare(flags) == 0) return {};
  if (errno != EPERM) return {errno, false};
  return {unshare_as_user(flags), true};
}

int own_user_namespace() {
  return unshare_as_user(0);
}

int hide_paths(const std::vector<std::string> &paths) {
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_SLAVE, nullptr) != 0) return errno;
  for (const std::string &path : paths) {
    if (const int error = cover(path); error != 0) return error;
  }
  return 0;
}

int become(uid_t user, gid_t group) {
  if (::setgroups(0, nullptr) != 0) return errno;
  if (::setresgid(group, group, group) != 0) return errno;
  return ::setresuid(user, user, user) == 0 ? 0 : errno;
}

int drop_bounding_set() {
  for (unsigned long capability = 0; capability < 64; ++capability) {
    if (::prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) == 0) continue;
    // EINVAL: the number is higher than that of the last capability. EPERM: the process may not
    // change its bounding set.
    return errno == EINVAL || errno == EPERM ? 0 : errno;
  }
  return 0;
}

int drop_capabilities(std::uint64_t keep) {
  ::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3]{};
  if (keep != 0 && ::syscall(__NR_capget, &header, sets) != 0) return errno;
  for (int half = 0; half < _LINUX_CAPABILITY_U32S_3; ++half) {
    const auto kept = static_cast<std::uint32_t>(keep >> (32 * half)) & sets[half].permitted;
    sets[half] = {kept, kept, 0};
  }
  return ::syscall(__NR_capset, &header, sets) == 0 ? 0 : errno;
}

int limit(int resource, std::uint64_t value) {
  rlimit now{};
  const auto which = static_cast<__rlimit_resource>(resource);
  if (::getrlimit(which, &now) != 0) return errno;
  const rlim_t wanted = std::min<rlim_t>(value, now.rlim_max);
  const rlimit next{wanted, wanted};
  return ::setrlimit(which, &next) == 0 ? 0 : errno;
}

}  // namespace bulkhead::steps
