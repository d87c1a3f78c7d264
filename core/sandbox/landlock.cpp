#include "sandbox/landlock.hpp"

#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "bulkhead/cpp/text.hpp"

namespace bulkhead {
namespace {

// The kernel's structures as of ABI 6. An older kernel receives only the prefix that it supports.
struct RulesetAttr {
  std::uint64_t fs = 0, net = 0, scope = 0;
};
struct [[gnu::packed]] PathAttr {
  std::uint64_t rights;
  std::int32_t fd;
};
struct PortAttr {
  std::uint64_t rights, port;
};
constexpr int rule_path = 1, rule_port = 2;
constexpr unsigned ask_version = 1U << 0;

// System call numbers, which are the same on every architecture. Old headers do not define them.
constexpr long nr_create_ruleset = 444, nr_add_rule = 445, nr_restrict_self = 446;

constexpr std::uint64_t file_rights =
    ll_execute | ll_write_file | ll_read_file | ll_truncate | ll_ioctl_dev;

std::uint64_t known_fs(int abi) noexcept {
  if (abi < 1) return 0;
  std::uint64_t known = ll_refer - 1;
  if (abi >= 2) known |= ll_refer;
  if (abi >= 3) known |= ll_truncate;
  if (abi >= 5) known |= ll_ioctl_dev;
  return known;
}
std::uint64_t known_net(int abi) noexcept {
  return abi >= 4 ? ll_tcp_bind | ll_tcp_connect : 0;
}
std::uint64_t known_scope(int abi) noexcept {
  return abi >= 6 ? ll_scope_abstract_sockets | ll_scope_signals : 0;
}

std::size_t attr_size(int abi) noexcept {
  return abi >= 6   ? sizeof(RulesetAttr)
         : abi >= 4 ? sizeof(std::uint64_t) * 2
                    : sizeof(std::uint64_t);
}

int add_path(int ruleset_fd, int path_fd, std::uint64_t rights) noexcept {
  struct stat status{};
  if (::fstat(path_fd, &status) != 0) return errno;
  if (!S_ISDIR(status.st_mode)) rights &= file_rights;
  if (rights == 0) return 0;  // the kernel rejects a rule without rights
  const PathAttr attr{rights, path_fd};
  return ::syscall(nr_add_rule, ruleset_fd, rule_path, &attr, 0U) == 0 ? 0 : errno;
}

}  // namespace

int landlock_abi() noexcept {
  static const long abi =
      ::syscall(nr_create_ruleset, nullptr, static_cast<std::size_t>(0), ask_version);
  return abi < 0 ? 0 : static_cast<int>(abi);
}

Result<OwnedFd> landlock_ruleset(const LandlockRules &rules) {
  const int abi = landlock_abi();
  const RulesetAttr attr{rules.fs & known_fs(abi), rules.net & known_net(abi),
                         rules.scope & known_scope(abi)};
  if ((attr.fs | attr.net | attr.scope) == 0) {
    return fail(BH_E_UNSUPPORTED,
                abi == 0 ? "this kernel has no Landlock, or it is disabled"
                         : "this kernel's Landlock supports none of the requested rules");
  }
  OwnedFd ruleset(static_cast<int>(::syscall(nr_create_ruleset, &attr, attr_size(abi), 0U)));
  if (ruleset.get() < 0) {
    return fail(BH_E_IO, std::string("cannot create a Landlock ruleset: ") + bh::error_name(errno));
  }
  for (const LandlockPath &path : rules.paths) {
    if (const int error = add_path(ruleset.get(), path.fd, path.rights & attr.fs); error != 0) {
      return fail(BH_E_IO,
                  "cannot add a Landlock rule for a path: " + std::string(bh::error_name(error)));
    }
  }
  for (const LandlockPort &port : rules.ports) {
    const PortAttr rule{port.rights & attr.net, port.port};
    if (rule.rights == 0) continue;
    if (::syscall(nr_add_rule, ruleset.get(), rule_port, &rule, 0U) != 0) {
      return fail(BH_E_IO, "cannot add a Landlock rule for TCP port " + std::to_string(port.port) +
                               ": " + bh::error_name(errno));
    }
  }
  return ruleset;
}

int landlock_allow(int ruleset_fd, int path_fd, std::uint64_t rights) noexcept {
  return add_path(ruleset_fd, path_fd, rights & known_fs(landlock_abi()));
}

int landlock_restrict_self(int ruleset_fd) noexcept {
  return ::syscall(nr_restrict_self, ruleset_fd, 0U) == 0 ? 0 : errno;
}

std::vector<std::string> landlock_missing(const LandlockRules &rules, int abi) {
  std::vector<std::string> missing;
  if (abi < 1 && rules.fs != 0) missing.emplace_back("landlock-files");
  if (abi >= 1 && abi < 3 && (rules.fs & ll_truncate) != 0)
    missing.emplace_back("landlock-truncate");
  if (abi >= 1 && abi < 5 && (rules.fs & ll_ioctl_dev) != 0) missing.emplace_back("landlock-ioctl");
  if (abi < 4 && rules.net != 0) missing.emplace_back("landlock-tcp");
  if (abi < 6 && rules.scope != 0) missing.emplace_back("landlock-scopes");
  return missing;
}

}  // namespace bulkhead
