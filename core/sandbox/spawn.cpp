#include "sandbox/spawn.hpp"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>
#include <utility>

#include "bulkhead/cpp/basics.hpp"
#include "bulkhead/cpp/text.hpp"
#include "reactor/reactor.hpp"
#include "sandbox/cache_bounds.hpp"
#include "sandbox/child_view.hpp"
#include "sandbox/grant_record.hpp"
#include "sandbox/orphans.hpp"
#include "sandbox/spawn_launch.hpp"
#include "sandbox/starters.hpp"

namespace bulkhead {
namespace {

bool plain_text(bh_str text) {
  return text.n == 0 || (text.p != nullptr && std::memchr(text.p, 0, text.n) == nullptr);
}

}  // namespace

Spawner::Child::Child() = default;
Spawner::Child::Child(Child &&) noexcept = default;
Spawner::Child &Spawner::Child::operator=(Child &&) noexcept = default;
Spawner::Child::~Child() = default;

Spawner::Spawner(SpawnOptions options)
    : options_(std::move(options)),
      namespaces_(options_.namespaces),
      groups_(options_.groups),
      places_(std::make_unique<KnownPlaces>()),
      record_(std::make_unique<GrantRecord>(GrantRecord::file_in(options_.state_dir))) {
  if (options_.reactor != nullptr && !options_.state_dir.empty()) {
    caches_ = std::make_unique<CacheBounds>(CacheBounds::Options{
        options_.state_dir + "/cache",
        [this](std::int32_t level, std::string_view text) { log(level, text); },
        options_.cache_settle, options_.cache_interval});
  }
  if (options_.adopt) ::prctl(PR_SET_CHILD_SUBREAPER, 1);
}

Spawner::~Spawner() {
  if (watch_ != 0) options_.reactor->unwatch(watch_);
  children_.for_each([this](std::uint64_t id, Child &child) {
    kill(id, SIGKILL);
    wait_end(child.pidfd.get());
  });
}

void Spawner::wait_end(int pidfd) noexcept {
  siginfo_t info{};
  while (::waitid(P_PIDFD, static_cast<id_t>(pidfd), &info, WEXITED) != 0 && errno == EINTR) {
  }
}

void Spawner::log(std::int32_t level, std::string_view text) const {
  if (options_.log) options_.log(level, text);
}

void Spawner::report_missing(std::string_view what, std::string_view why) {
  if (std::find(missing_.begin(), missing_.end(), what) != missing_.end()) return;
  missing_.emplace_back(what);
  log(BH_LOG_WARN, "the sandbox of servers is incomplete: " + std::string(what) + " is missing (" +
                       std::string(why) + ")");
  if (options_.on_missing) options_.on_missing();
}

// ---- starting ----------------------------------------------------------------------------------

bh_status Spawner::spawn(const bh_spawn &request, bh_child *out, bh_error *error) {
  bool plain = request.argc > 0 && plain_text(request.program) && plain_text(request.cwd);
  for (std::uint32_t i = 0; i < request.argc; ++i) plain = plain && plain_text(request.argv[i]);
  for (std::uint32_t i = 0; i < request.envc; ++i) plain = plain && plain_text(request.env[i]);
  if (!plain || request.program.n == 0) {
    return bh::fail(
        error, BH_E_INVALID,
        "a child process requires a program, and its arguments and variables must not contain NUL");
  }
  auto launch = std::make_unique<Launch>();
  launch->server = bh::view(request.server);
  launch->program = bh::view(request.program);
  launch->cwd = bh::view(request.cwd);
  for (std::uint32_t i = 0; i < request.argc; ++i)
    launch->arguments.emplace_back(bh::view(request.argv[i]));
  for (std::uint32_t i = 0; i < request.envc; ++i)
    launch->environment.emplace_back(bh::view(request.env[i]));
  auto policy = parse_child_policy(launch->server, bh::view(request.definition));
  if (!policy) return bh::fail(error, policy.error().code, policy.error().text);
  launch->policy = std::move(*policy);
  bh_status status = prepare(*launch, error);
  if (status != BH_OK) return status;
  status = start(launch, out, error);
  if (status == BH_OK || launch == nullptr || !may_retry_without_namespaces(*launch)) return status;
  // Retry without namespaces. Later starts will not use them either.
  auto again = std::make_unique<Launch>();
  again->server = launch->server;
  again->program = launch->program;
  again->cwd = bh::view(request.cwd);
  again->arguments = std::move(launch->arguments);
  again->environment = std::move(launch->environment);
  again->policy = std::move(launch->policy);
  status = prepare(*again, error);
  return status != BH_OK ? status : start(again, out, error);
}

namespace {

constexpr const char *namespace_limits[] = {
    "/proc/sys/user/max_user_namespaces", "/proc/sys/user/max_mnt_namespaces",
    "/proc/sys/user/max_pid_namespaces", "/proc/sys/user/max_net_namespaces"};

// Returns true for steps that fail for every server if the kernel, or its configuration, does not
// support namespaces.
bool is_namespace_step(SpawnStep step) {
  return step == SpawnStep::clone || step == SpawnStep::identity || step == SpawnStep::mounts ||
         step == SpawnStep::network || step == SpawnStep::init;
}

// Returns what the start was doing at this step, for error messages.
const char *action_of(SpawnStep step) {
  switch (step) {
    case SpawnStep::clone:
      return "creating its process";
    case SpawnStep::identity:
      return "mapping its user and group IDs";
    case SpawnStep::ipc:
      return "creating its IPC or UTS namespace";
    case SpawnStep::mounts:
      return "making its mounts private and read-only";
    case SpawnStep::network:
      return "configuring its loopback interface";
    case SpawnStep::limits:
      return "setting its resource limits";
    case SpawnStep::privileges:
      return "dropping its privileges";
    case SpawnStep::landlock:
      return "applying its Landlock rules";
    case SpawnStep::filter:
      return "installing its system call filter";
    case SpawnStep::descriptors:
      return "redirecting its standard streams";
    case SpawnStep::init:
      return "starting its init process";
    default:
      return "starting its program";
  }
}

}  // namespace

bool is_limited_to_zero(const char *file) {
  std::ifstream in(file);
  std::string text;
  return std::getline(in, text) && text == "0";
}

bool is_lasting(int error) {
  if (error != ENOSPC) return means_unsupported(error);
  return std::any_of(std::begin(namespace_limits), std::end(namespace_limits), is_limited_to_zero);
}

bool Spawner::may_retry_without_namespaces(Launch &launch) {
  if (!launch.plan.namespaces || options_.require) return false;
  if (!is_namespace_step(launch.plan.failed) || !is_lasting(launch.plan.error)) return false;
  namespaces_ = false;
  report_missing("namespaces", bh::error_name(launch.plan.error));
  return true;
}

void Spawner::report_missing(Launch &launch, std::string_view what, std::string_view why) {
  launch.missing_parts.append(launch.missing_parts.empty() ? "" : ", ")
      .append(what)
      .append(" (")
      .append(why) += ')';
  report_missing(what, why);
}

bh_status Spawner::refuse(const Launch &launch, bh_error *error) const {
  return bh::fail(error, BH_E_UNSUPPORTED, launch.who() + incomplete_sandbox(launch.missing_parts));
}

// Returns true if children can be started on other threads. This requires a reactor, which is
// notified when a start has finished.
bool Spawner::can_start_asynchronously() {
  if (options_.reactor == nullptr) return false;
  if (watch_ != 0) return true;
  if (!starters_) starters_ = std::make_unique<Starters>();
  const auto finished = bh::fd_callback<&Spawner::on_finished>(this);
  return starters_->prepare() && options_.reactor->watch(this, starters_->finished_fd(), BH_FD_READ,
                                                         finished, &watch_) == BH_OK;
}

// Begins starting a child. Returns true if the steps that must be awaited have succeeded and the
// start continues on another thread. Returns false if the start is already over.
bool Spawner::begin(Launch &launch) {
  ChildPlan &plan = launch.plan;
  if (can_start_asynchronously() && starters_->start(&plan)) {
    // If an earlier child has completed the namespace steps, the kernel supports them, so the
    // caller need not wait for them.
    const bool sure = proven_ || !plan.namespaces;
    wait_for(plan, sure ? SpawnPhase::identified : SpawnPhase::viewed);
    const SpawnStep failed = plan.failed;
    const SpawnStep last_awaited = sure ? SpawnStep::identity : SpawnStep::network;
    if (failed == SpawnStep::none || failed > last_awaited) return true;
    wait_for(plan, SpawnPhase::over);
    starters_->forget(&plan);
    return false;
  }
  const ChildStacks stacks;
  stacks.assign_to(&plan);
  start_child(&plan);
  return false;
}

bh_status Spawner::start(std::unique_ptr<Launch> &launch, bh_child *out, bh_error *error) {
  ChildPlan &plan = launch->plan;
  launch->exit_report = above_standard(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!launch->exit_report) {
    return bh::fail(error, BH_E_LIMIT,
                    launch->who() + "cannot be started: " + bh::error_name(errno));
  }
  fill_plan(*launch);
  const bool on_its_own = begin(*launch);
  if (!on_its_own && plan.failed != SpawnStep::none) {
    if (plan.pidfd >= 0) {
      wait_end(plan.pidfd);
      ::close(plan.pidfd);
    }
    if (groups_) groups_->remove(launch->group.name);
    return failure(*launch, error);
  }
  if (plan.namespaces) proven_ = true;
  return hand_out(std::move(launch), !on_its_own, out, error);
}

bh_status Spawner::hand_out(std::unique_ptr<Launch> launch, bool ready, bh_child *out,
                            bh_error *error) {
  const int shared = ::fcntl(launch->plan.pidfd, F_DUPFD_CLOEXEC, 3);
  if (shared < 0) {
    const int number = errno;
    bh::fail(error, BH_E_LIMIT,
             launch->who() + "cannot be started: its process descriptor cannot be duplicated: " +
                 bh::error_name(number));
  }
  // The child has its own copies of these descriptors.
  for (OwnedFd *fd : {&launch->child_in, &launch->child_out, &launch->child_err, &launch->landlock})
    fd->reset();
  out->pid = launch->plan.pid;
  out->pidfd = shared;
  out->in = launch->in.release();
  out->out = launch->out.release();
  out->err = launch->err.release();
  Child child;
  child.pid = launch->plan.pid;
  child.pidfd = OwnedFd(launch->plan.pidfd);
  child.exit_report = std::move(launch->exit_report);
  child.namespaces = launch->plan.namespaces;
  child.group = launch->group.name;
  if (caches_ && !launch->cache.empty() && launch->policy.cache_bytes != 0) {
    child.bounded_cache = launch->server;
    caches_->started(launch->server, launch->policy.cache_bytes);
  }
  child.launch = std::move(launch);
  out->id = children_.insert(std::move(child));
  Child &kept = *children_.get(out->id);
  kept.launch->plan.child = out->id;
  if (ready) settle(kept);
  if (shared >= 0) return BH_OK;
  for (const int fd : {out->in, out->out, out->err}) ::close(fd);
  kill(out->id, SIGKILL);
  wait_end(kept.pidfd.get());
  bh_child_end ignored{};
  ignored.size = sizeof ignored;
  reap(out->id, &ignored);
  return BH_E_LIMIT;
}

void Spawner::report_missing_parts(const ChildPlan &plan) {
  if (plan.groups_failed)
    report_missing("process-limit", "the server cannot join its control group");
  if (plan.processes_error != 0 && plan.failed == SpawnStep::none)
    report_missing("own-proc", "/proc cannot be mounted here");
  if (plan.lacks_ipc(plan.ipc_error))
    report_missing("ipc-namespace", bh::error_name(plan.ipc_error));
  if (plan.lacks_ipc(plan.uts_error))
    report_missing("uts-namespace", bh::error_name(plan.uts_error));
}

// Records the result of a finished start.
void Spawner::settle(Child &child) {
  Launch &launch = *child.launch;
  report_missing_parts(launch.plan);
  if (launch.plan.failed != SpawnStep::none) {
    bh_error why = bh::make_error();
    const bh_status code = failure(launch, &why);
    child.failure = Error{code, std::string(bh::text(why))};
    may_retry_without_namespaces(launch);  // may disable namespaces for later starts
  }
  child.launch.reset();
}

void Spawner::on_finished() {
  while (const ChildPlan *plan = starters_->next_finished()) {
    Child *child = children_.get(plan->child);
    if (child != nullptr && child->launch) settle(*child);
  }
}

bh_status Spawner::failure(const Launch &launch, bh_error *error) const {
  const ChildPlan &plan = launch.plan;
  const int number = plan.error;
  const std::string who = launch.who(), why = bh::error_name(number);
  switch (plan.failed) {
    case SpawnStep::folder:
      return bh::fail(error, BH_E_NOT_FOUND,
                      "folder \"" + launch.cwd + "\" of server \"" + launch.server + "\": " + why);
    case SpawnStep::program:
      break;
    case SpawnStep::view:
      return bh::fail(error, BH_E_UNAVAILABLE,
                      who + "cannot be started: " + (plan.what != nullptr ? plan.what : "a path") +
                          " in its sandbox: " + why);
    case SpawnStep::ipc:
      if (options_.require) {
        return bh::fail(
            error, BH_E_UNSUPPORTED,
            who + incomplete_sandbox((plan.ipc_error != 0 ? "ipc-namespace (" : "uts-namespace (") +
                                     why + ")"));
      }
      [[fallthrough]];
    default:
      if (options_.require && plan.namespaces && is_namespace_step(plan.failed)) {
        return bh::fail(error, BH_E_UNSUPPORTED,
                        who + incomplete_sandbox("namespaces (" + why + ")"));
      }
      return bh::fail(
          error, options_.require ? BH_E_UNSUPPORTED : BH_E_UNAVAILABLE,
          who + "cannot be started: " + why + " (while " + action_of(plan.failed) + ")");
  }
  if (number == ENOENT) {
    // The program may be a script whose interpreter is missing or hidden in the sandbox.
    const bool there = launch.arguments[0].find('/') == std::string::npos ||
                       ::access(launch.program.c_str(), F_OK) == 0;
    return bh::fail(error, BH_E_NOT_FOUND,
                    who + (there ? "cannot be run: the interpreter on its first line does not exist"
                                 : "does not exist"));
  }
  const bool denied = number == EACCES || number == EPERM;
  return bh::fail(error, denied ? BH_E_DENIED : BH_E_IO, who + "cannot be run: " + why);
}

// ---- running children --------------------------------------------------------------------------

bh_status Spawner::kill(bh_child_id id, std::int32_t signal) {
  Child *child = children_.get(id);
  if (child == nullptr) return BH_STALE;
  // This call fails if other code has already reaped the child.
  if (::syscall(SYS_pidfd_send_signal, child->pidfd.get(), 0, nullptr, 0) != 0) return BH_OK;
  // The first process forwards signals to the server's process group. It cannot forward SIGKILL. In
  // a PID namespace, killing the first process kills all processes. Otherwise, the first process
  // receives end_all, which it handles once the server has started.
  const bool via_init = signal == SIGKILL && !child->namespaces;
  const int sent = via_init ? ChildPlan::end_all : signal;
  ::syscall(SYS_pidfd_send_signal, child->pidfd.get(), sent, nullptr, 0);
  if (via_init) ::syscall(SYS_pidfd_send_signal, child->pidfd.get(), SIGCONT, nullptr, 0);
  return BH_OK;
}

// Kills the processes that a server left behind because its first process was killed before it
// could kill them. They are recognized as children of this process that it did not start itself.
// Children in this program's own session belong to the program and are not killed.
void Spawner::end_orphans() {
  if (!options_.adopt) return;
  const auto is_orphan = [this, session = ::getsid(0)](pid_t pid) {
    bool ours = ::getsid(pid) == session;
    children_.for_each([&](std::uint64_t, const Child &child) { ours = ours || child.pid == pid; });
    return !ours;
  };
  if (const std::size_t ended = kill_children(is_orphan); ended != 0) {
    log(BH_LOG_INFO,
        std::to_string(ended) + " processes left behind by a stopped server were killed");
  }
}

bh_status Spawner::reap(bh_child_id id, bh_child_end *out) {
  Child *child = children_.get(id);
  if (child == nullptr) return BH_STALE;
  siginfo_t info{};
  const int result =
      ::waitid(P_PIDFD, static_cast<id_t>(child->pidfd.get()), &info, WEXITED | WNOHANG);
  if (result == 0 && info.si_pid == 0) return BH_PENDING;
  if (child->launch) {
    // The child has exited, so this wait is short.
    wait_for(child->launch->plan, SpawnPhase::over);
    starters_->forget(&child->launch->plan);
    settle(*child);
  }
  // ECHILD: the embedding program has already reaped the child, so the child's status is unknown.
  out->how = BH_CHILD_UNKNOWN;
  out->status = 0;
  std::uint64_t report = 0;
  if (child->exit_report &&
      ::read(child->exit_report.get(), &report, sizeof report) == sizeof report) {
    const int status = static_cast<int>(report - 1);
    out->how = WIFSIGNALED(status) ? BH_CHILD_KILLED : BH_CHILD_EXITED;
    out->status = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
  } else if (result == 0) {
    out->how = info.si_code == CLD_EXITED ? BH_CHILD_EXITED : BH_CHILD_KILLED;
    out->status = info.si_status;
  }
  if (child->failure) {
    out->how = BH_CHILD_NOT_STARTED;
    // NOLINTNEXTLINE(bugprone-sizeof-expression): the size of the member, a pointer
    if (BH_HAS(bh_child_end, out, why))
      bh::fail(out->why, child->failure->code, child->failure->text);
  }
  if (groups_) groups_->remove(child->group);
  if (!child->bounded_cache.empty()) caches_->ended(child->bounded_cache);
  const bool may_leave_some = !child->namespaces;
  children_.erase(id);
  if (may_leave_some) end_orphans();
  return BH_OK;
}

}  // namespace bulkhead
