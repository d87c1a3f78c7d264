#include "sandbox/confine.hpp"

#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/owned_fd.hpp"
#include "bulkhead/cpp/text.hpp"
#include "sandbox/landlock.hpp"
#include "sandbox/named_folder.hpp"
#include "sandbox/seccomp.hpp"
#include "sandbox/steps.hpp"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define BULKHEAD_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || \
    __has_feature(memory_sanitizer) || __has_feature(undefined_behavior_sanitizer)
#define BULKHEAD_SANITIZED 1
#endif
#endif

namespace bulkhead {
namespace {

#ifdef BULKHEAD_SANITIZED
constexpr bool sanitized = true;
#else
constexpr bool sanitized = false;
#endif

// The oldest supported headers do not define these constants.
constexpr int pr_set_mdwe = 65;
constexpr unsigned long mdwe_refuse_exec_gain = 1;

std::uint64_t rights_of(PathRule::Access access) noexcept {
  switch (access) {
    case PathRule::Access::read:
      return ll_read;
    case PathRule::Access::read_execute:
      return ll_read_execute;
    case PathRule::Access::read_write:
      return ll_read_write;
    case PathRule::Access::device:
      return ll_read_file | ll_write_file | ll_ioctl_dev;
  }
  return 0;
}

// The state of one confine() call.
class ConfineRun {
 public:
  explicit ConfineRun(const Confinement &confinement) : confinement_(confinement) {}

  Result<Enforced> run() {
    const ConfineLayers &layers = confinement_.layers;
    if (layers.landlock) {
      if (auto ok = prepare_landlock(); !ok) return std::unexpected(ok.error());
    }
    if (layers.limits) apply_limits();
    if (layers.namespaces) isolate();
    if (layers.limits) limit_processes();
    if (layers.identity) {
      if (auto ok = drop_privileges(); !ok) return std::unexpected(ok.error());
    }
    if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return os_error("no_new_privs", errno);
    done("no-new-privs");
    if (layers.process) close_doors();
    if (ruleset_.get() >= 0) {
      if (const int error = landlock_restrict_self(ruleset_.get()); error != 0) {
        return os_error("landlock_restrict_self", error);
      }
      ruleset_.reset();
    }
    if (layers.seccomp) filter_calls();
    if (confinement_.mode == ConfineMode::require && !enforced_.missing.empty()) return refused();
    return std::move(enforced_);
  }

 private:
  void done(const char *word) { enforced_.in_force.emplace_back(word); }
  void missing(const char *word) { enforced_.missing.emplace_back(word); }
  void note(const char *word, bool worked) { worked ? done(word) : missing(word); }

  std::unexpected<Error> os_error(const std::string &what, int error) const {
    return fail(BH_E_IO, confinement_.role + ": cannot confine this process: " + what + ": " +
                             bh::error_name(error));
  }

  std::unexpected<Error> refused() const {
    std::string words;
    for (const std::string &word : enforced_.missing) words += (words.empty() ? "" : ", ") + word;
    return fail(BH_E_UNSUPPORTED,
                confinement_.role + ": isolation is required, but this system lacks: " + words +
                    " (mode = \"best-effort\" in [isolation] starts without them)");
  }

  bool file_rules() const { return !(confinement_.namespaces && confinement_.paths.empty()); }

  LandlockRules rules() const {
    LandlockRules rules;
    if (!file_rules()) rules.fs = 0;
    if (!confinement_.network) return rules;
    if (confinement_.connect_ports.empty()) {
      rules.net = confinement_.exec ? 0 : ll_tcp_bind;
    }
    for (const std::uint16_t port : confinement_.connect_ports) {
      rules.ports.push_back({port, ll_tcp_connect});
    }
    return rules;
  }

  // Opens the paths now, because the process may later have a different user ID and different
  // namespaces.
  Result<void> prepare_landlock() {
    LandlockRules wanted = rules();
    std::vector<OwnedFd> opened;
    for (const PathRule &rule : confinement_.paths) {
      int fd = rule.fd;
      if (fd < 0) {
        opened.push_back(rule.links ? OwnedFd(::open(rule.path.c_str(), O_PATH | O_CLOEXEC))
                                    : open_without_links(rule.path));
        fd = opened.back().get();
        // Without a rule, the plugin cannot open the path, and reports the reason.
        const bool missing = errno == ENOENT || errno == ENOTDIR || errno == EACCES;
        const bool refused = errno == ELOOP || errno == ENOSYS || errno == EPERM;
        if (fd < 0 && (missing || (refused && !rule.links))) continue;
        if (fd < 0) return os_error(rule.path, errno);
      }
      wanted.paths.push_back({fd, rights_of(rule.access)});
    }
    note_landlock(wanted, landlock_abi());
    auto ruleset = landlock_ruleset(wanted);
    // Either the kernel does not support Landlock, or it supports none of the requested features.
    // (Linux 6.1, for example, has neither TCP rules nor scopes.) note_landlock() has recorded the
    // missing features.
    if (!ruleset && ruleset.error().code == BH_E_UNSUPPORTED) return {};
    if (!ruleset)
      return fail(ruleset.error().code, confinement_.role + ": " + ruleset.error().text);
    ruleset_ = std::move(*ruleset);
    return {};
  }

  void note_landlock(const LandlockRules &wanted, int abi) {
    enforced_.missing = landlock_missing(wanted, abi);
    if (wanted.fs != 0 && abi >= 1) done("landlock-files");
    if (wanted.net != 0 && abi >= 4) done("landlock-tcp");
    if (wanted.scope != 0 && abi >= 6) done("landlock-scopes");
  }

  void apply_limits() {
    bool good = steps::limit(RLIMIT_CORE, 0) == 0;
    const auto lower = [&](int resource, std::uint64_t value) {
      if (value != 0 && steps::limit(resource, value) != 0) good = false;
    };
    lower(RLIMIT_NOFILE, confinement_.descriptors);
    lower(RLIMIT_FSIZE, confinement_.file_bytes);
    // A write beyond the limit must fail instead of terminating the process.
    if (confinement_.file_bytes != 0) ::signal(SIGXFSZ, SIG_IGN);
    if (confinement_.memory_bytes != 0) {
      note("memory-limit", !sanitized && steps::limit(RLIMIT_DATA, confinement_.memory_bytes) == 0);
    }
    note("limits", good);
  }

  void isolate() {
    if (!confinement_.network) note("network-namespace", isolate_from(CLONE_NEWNET));
    if (confinement_.namespaces && !confinement_.hide.empty()) {
      note("mount-namespace",
           isolate_from(CLONE_NEWNS) && steps::hide_paths(confinement_.hide) == 0);
    }
  }

  void limit_processes() {
    if (confinement_.processes == 0) return;
    // Set the limit only if it would count this role's processes and no others. For an ordinary
    // user, the kernel counts all of the user's programs, except in a user namespace. A role that
    // starts third-party programs does not get a user namespace for this purpose: in it, root's
    // files appear to belong to user 65534, and ssh and other programs reject such files. The user
    // namespace is created before the limit is set, because the kernel derives the namespace's own
    // limit from the current limit.
    bool alone = own_user_namespace_ || (::geteuid() == 0 && confinement_.ids);
    if (!alone && ::geteuid() != 0 && !confinement_.exec) alone = steps::own_user_namespace() == 0;
    note("process-limit", alone && steps::limit(RLIMIT_NPROC, confinement_.processes) == 0);
  }

  bool isolate_from(int flag) {
    const steps::Isolated result = steps::own_namespaces(flag);
    if (result.error == 0 && result.user_namespace) own_user_namespace_ = true;
    return result.error == 0;
  }

  Result<void> drop_privileges() {
    // The order matters: each step removes a privilege that the step before it needs.
    if (const int error = steps::drop_bounding_set(); error != 0) {
      return os_error("dropping capabilities", error);
    }
    if (confinement_.ids && ::geteuid() == 0) {
      if (const int error = steps::become(confinement_.ids->first, confinement_.ids->second);
          error != 0) {
        return os_error("becoming user " + std::to_string(confinement_.ids->first), error);
      }
      done("user");
    }
    // Root needs CAP_SETFCAP to create user namespaces for child processes. Programs that it
    // executes do not inherit this capability.
    const bool root_with_children = confinement_.namespaces && ::geteuid() == 0;
    const std::uint64_t keep = root_with_children ? 1ULL << CAP_SETFCAP : 0;
    if (const int error = steps::drop_capabilities(keep); error != 0) {
      return os_error("dropping capabilities", error);
    }
    done("no-capabilities");
    return {};
  }

  void close_doors() {
    if (sanitized) {
      missing("not-dumpable");  // LeakSanitizer attaches as a debugger
    } else {
      note("not-dumpable", ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0);
    }
    if (confinement_.exec) return;  // third-party programs may compile code at run time
    note("no-writable-code", ::prctl(pr_set_mdwe, mdwe_refuse_exec_gain, 0, 0, 0) == 0);
  }

  void filter_calls() {
    if (sanitized) {
      missing("seccomp");
      return;
    }
    // Only roles that may write files may clone files.
    const bool writes = std::any_of(
        confinement_.paths.begin(), confinement_.paths.end(),
        [](const PathRule &rule) { return rule.access == PathRule::Access::read_write; });
    const auto program =
        seccomp_program({confinement_.network, confinement_.unix_sockets, confinement_.exec,
                         confinement_.namespaces, confinement_.debuggers, writes});
    note("seccomp", seccomp_install(program.data(), program.size()) == 0);
  }

  const Confinement &confinement_;
  Enforced enforced_;
  OwnedFd ruleset_;
  bool own_user_namespace_ = false;
};

}  // namespace

Result<Enforced> confine(const Confinement &confinement) {
  return ConfineRun(confinement).run();
}

std::vector<PathRule> library_paths() {
  using enum PathRule::Access;
  std::vector<PathRule> rules;
  for (const char *path :
       {"/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib", "/etc/ld.so.cache",
        "/etc/localtime", "/usr/share/zoneinfo", "/dev/urandom", "/dev/random"}) {
    rules.push_back({path, -1, read});
  }
  rules.push_back({"/dev/null", -1, device});
  return rules;
}

std::vector<PathRule> network_config_paths() {
  using enum PathRule::Access;
  std::vector<PathRule> rules;
  for (const char *path :
       {"/etc/resolv.conf", "/etc/hosts", "/etc/host.conf", "/etc/nsswitch.conf", "/etc/gai.conf",
        "/etc/services", "/etc/protocols", "/etc/ssl", "/etc/pki", "/etc/ca-certificates",
        "/usr/share/ca-certificates", "/usr/local/share/ca-certificates", "/run/systemd/resolve"}) {
    rules.push_back({path, -1, read});
  }
  return rules;
}

}  // namespace bulkhead
