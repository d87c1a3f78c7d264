#include "sandbox/spawn.hpp"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <utility>

#include "bulkhead/cpp/basics.hpp"
#include "reactor/reactor.hpp"
#include "sandbox/cache_bounds.hpp"
#include "sandbox/child.hpp"
#include "sandbox/child_filter.hpp"
#include "sandbox/child_image.hpp"
#include "sandbox/child_landlock.hpp"
#include "sandbox/child_view.hpp"
#include "sandbox/orphans.hpp"
#include "sandbox/starters.hpp"

namespace bulkhead {
namespace {

using Mode = ChildPolicy::Mode;

std::string name_of(int error) {
  const char *text = ::strerrordesc_np(error);
  return text != nullptr ? text : "error " + std::to_string(error);
}

// Above 2, so that dup2() onto the standard descriptors neither clobbers one nor is a no-op.
OwnedFd above_standard(int fd) {
  if (fd < 0 || fd > 2) return OwnedFd(fd);
  OwnedFd low(fd);
  return OwnedFd(::fcntl(fd, F_DUPFD_CLOEXEC, 3));
}

// Not blocking on our side only: O_NONBLOCK belongs to the open file, each end of a pipe is one.
bool make_pipe(OwnedFd *ours, OwnedFd *theirs, bool we_write) {
  int fds[2];
  if (::pipe2(fds, O_CLOEXEC) != 0) return false;
  OwnedFd read = above_standard(fds[0]), write = above_standard(fds[1]);
  *ours = std::move(we_write ? write : read);
  *theirs = std::move(we_write ? read : write);
  return *ours && *theirs &&
         ::fcntl(ours->get(), F_SETFL, ::fcntl(ours->get(), F_GETFL) | O_NONBLOCK) == 0;
}

bool plain_text(bh_str text) {
  return text.n == 0 || (text.p != nullptr && std::memchr(text.p, 0, text.n) == nullptr);
}

std::uint64_t monotonic_ns() {
  timespec t{};
  ::clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(t.tv_nsec);
}

std::string not_all_of_it(std::string_view lacks) {
  return "is not started: isolation.mode is \"require\", and this machine lacks parts of its "
         "sandbox: " +
         std::string(lacks);
}

std::string own_map(std::uint64_t id) {
  const std::string text = std::to_string(id);
  return text + " " + text + " 1";
}

}  // namespace

// Keeps everything alive that the plan points to.
struct Spawner::Launch {
  std::string server, program, cwd;
  std::vector<std::string> arguments, environment;
  std::vector<char *> argv, envp;
  ChildPolicy policy;
  ChildView view;
  std::vector<ChildMount> mounts;
  std::string uid_map, gid_map, scratch_options, cache;
  ServerGroups::Group group;
  std::string lacks;  // what its sandbox will not have, for people
  OwnedFd in, out, err, child_in, child_out, child_err, exit_report, landlock;
  ChildPlan plan;

  std::string who() const {
    return "command \"" + arguments[0] + "\" of server \"" + server + "\" ";
  }
};

Spawner::Child::Child() = default;
Spawner::Child::Child(Child &&) noexcept = default;
Spawner::Child &Spawner::Child::operator=(Child &&) noexcept = default;
Spawner::Child::~Child() = default;

Spawner::Spawner(SpawnOptions options)
    : options_(std::move(options)),
      namespaces_(options_.namespaces),
      groups_(options_.groups),
      places_(std::make_unique<KnownPlaces>()) {
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

void Spawner::lacks(std::string_view what, std::string_view why) {
  if (std::find(missing_.begin(), missing_.end(), what) != missing_.end()) return;
  missing_.emplace_back(what);
  log(BH_LOG_WARN, "servers are confined less than they could be: " + std::string(what) +
                       " is missing (" + std::string(why) + ")");
  if (options_.on_missing) options_.on_missing();
}

// ---- starting ----------------------------------------------------------------------------------

bh_status Spawner::spawn(const bh_spawn &request, bh_child *out, bh_error *error) {
  bool plain = request.argc > 0 && plain_text(request.program) && plain_text(request.cwd);
  for (std::uint32_t i = 0; i < request.argc; ++i) plain = plain && plain_text(request.argv[i]);
  for (std::uint32_t i = 0; i < request.envc; ++i) plain = plain && plain_text(request.env[i]);
  if (!plain || request.program.n == 0) {
    return bh::fail(error, BH_E_INVALID, "a child needs a program, and texts without NUL");
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
  if (status == BH_OK || launch == nullptr || !can_do_without_namespaces(*launch)) return status;
  // Once more, and from now on, without them.
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

// What a kernel, or who has configured it, may refuse altogether.
bool is_of_namespaces(SpawnStep step) {
  return step == SpawnStep::clone || step == SpawnStep::identity || step == SpawnStep::mounts ||
         step == SpawnStep::network || step == SpawnStep::init;
}

}  // namespace

bool Spawner::can_do_without_namespaces(Launch &launch) {
  if (!launch.plan.namespaces || options_.require) return false;
  if (!is_of_namespaces(launch.plan.failed) || launch.plan.error == ENOMEM ||
      launch.plan.error == EAGAIN)
    return false;
  namespaces_ = false;
  lacks("namespaces", name_of(launch.plan.error));
  return true;
}

namespace {

std::string make_cache_folder(const std::string &state_dir, const std::string &server) {
  if (state_dir.empty() || server.empty() || server.find('/') != std::string::npos) return {};
  if (server.starts_with('.')) return {};  // "..": the state of the gateway itself
  std::error_code error;
  std::filesystem::create_directories(state_dir, error);
  std::string folder = state_dir;
  for (const std::string &name : {std::string("cache"), server}) {
    folder += "/" + name;
    if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) return {};
  }
  return real_path(folder);
}

// What child_view.hpp does by mounts, said to the programs themselves.
void point_caches(const std::string &cache, std::vector<std::string> *environment) {
  static constexpr std::pair<std::string_view, std::string_view> variables[] = {
      {"npm_config_cache", "npm"},           {"XDG_CACHE_HOME", "cache"},
      {"UV_TOOL_DIR", "uv-tools"},           {"BUN_INSTALL_CACHE_DIR", "bun"},
      {"MCP_REMOTE_CONFIG_DIR", "mcp-auth"}, {"TMPDIR", "tmp"},
  };
  if (cache.empty()) return;
  for (const auto &[name, folder] : variables) {
    const std::string start = std::string(name) + "=";
    const bool there = std::any_of(environment->begin(), environment->end(),
                                   [&](const std::string &e) { return e.starts_with(start); });
    const std::string path = cache + "/" + std::string(folder);
    if (there || (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST)) continue;
    environment->push_back(start + path);
  }
}

std::vector<char *> pointers(std::vector<std::string> *texts) {
  std::vector<char *> out;
  out.reserve(texts->size() + 1);
  for (std::string &text : *texts) out.push_back(text.data());
  out.push_back(nullptr);
  return out;
}

std::vector<ChildMount> mounts_of(const ChildView &view, bool require) {
  std::vector<ChildMount> out;
  out.reserve(view.steps.size());
  for (const ViewStep &step : view.steps) {
    ChildMount &mount = out.emplace_back();
    mount.kind = static_cast<ChildMount::Kind>(step.kind);
    mount.path = step.path.c_str();
    mount.source = step.source.c_str();
    mount.writable = step.writable;
    mount.folder = step.folder;
    mount.make = step.make;
    mount.holds = step.holds;
    // A machine that hides parts of /proc (a container) lets nobody mount another one.
    mount.optional = step.kind == ViewStep::Kind::processes && !require;
  }
  return out;
}

}  // namespace

bh_status Spawner::prepare(Launch &launch, bh_error *error) {
  if (!make_pipe(&launch.in, &launch.child_in, true) ||
      !make_pipe(&launch.out, &launch.child_out, false) ||
      !make_pipe(&launch.err, &launch.child_err, false)) {
    const int number = errno;
    return bh::fail(error, number == EMFILE || number == ENFILE ? BH_E_LIMIT : BH_E_IO,
                    "server \"" + launch.server + "\": cannot make pipes: " + name_of(number));
  }
  ChildPlan &plan = launch.plan;
  plan.confined = launch.policy.mode != Mode::off;
  plan.namespaces = plan.confined && namespaces_;
  if (plan.confined && !namespaces_ && options_.require) {
    return bh::fail(error, BH_E_UNSUPPORTED, launch.who() + not_all_of_it("namespaces"));
  }
  if (plan.confined && !namespaces_ && !launch.policy.network) {
    return bh::fail(error, BH_E_UNSUPPORTED,
                    launch.who() +
                        "is not started: without namespaces it cannot be kept from the "
                        "network");
  }
  if (!init_image_) {
    auto image = child_init_image();
    if (!image) return bh::fail(error, image.error().code, launch.who() + image.error().text);
    init_image_ = std::move(*image);
  }
  if (plan.confined) {
    ViewRequest view;
    view.policy = &launch.policy;
    view.program = launch.program;
    view.home = options_.home;
    if (const char *home = std::getenv("HOME"); view.home.empty() && home != nullptr)
      view.home = home;
    if (caches_ && launch.policy.cache_bytes != 0) caches_->make_room(launch.server);
    view.cache = make_cache_folder(options_.state_dir, launch.server);
    view.user = ::geteuid();
    places_->refresh(monotonic_ns());
    view.places = places_.get();
    view.own = options_.own;
    if (!options_.state_dir.empty()) view.own.push_back(options_.state_dir);
    launch.view = plan_view(view);
    launch.cache = view.cache;
    for (const std::string &path : launch.view.ignored) {
      log(BH_LOG_WARN, "server \"" + launch.server + "\": " + path + "; it is not granted");
    }
    if (!plan.namespaces) point_caches(view.cache, &launch.environment);
    launch.mounts = mounts_of(launch.view, options_.require);
    Error why;
    if (!prepare_landlock(launch, &why)) {
      return bh::fail(error, why.code, launch.who() + "is not started: " + why.text);
    }
    prepare_groups(launch);
    if (options_.require && !launch.lacks.empty()) return refuse(launch, error);
    plan.filter = &child_filter(launch.policy.mode == Mode::strict);
  }
  launch.uid_map = own_map(::geteuid());
  launch.gid_map = own_map(::getegid());
  launch.scratch_options = "mode=1777,size=" + std::to_string(options_.scratch_bytes);
  plan.cwd_given = !launch.cwd.empty();
  if (!plan.cwd_given) {
    std::error_code none;
    launch.cwd = std::filesystem::current_path(none).string();
  }
  launch.argv = pointers(&launch.arguments);
  launch.envp = pointers(&launch.environment);
  return BH_OK;
}

void Spawner::lacks(Launch &launch, std::string_view what, std::string_view why) {
  launch.lacks.append(launch.lacks.empty() ? "" : ", ").append(what).append(" (").append(why) +=
      ')';
  lacks(what, why);
}

bh_status Spawner::refuse(const Launch &launch, bh_error *error) const {
  return bh::fail(error, BH_E_UNSUPPORTED, launch.who() + not_all_of_it(launch.lacks));
}

void Spawner::prepare_groups(Launch &launch) {
  if (!groups_) groups_ = std::make_shared<ServerGroups>();
  if (::geteuid() == 0 && !groups_->counts_processes()) {
    lacks(launch, "process-limit",
          "no control group can be made here, and nothing else counts root's");
  }
  if (launch.policy.memory_bytes != 0 && !groups_->counts_memory()) {
    lacks(launch, "memory-group",
          "no control group can be made here, so each process of a server has the bound of "
          "memory_bytes by itself");
  }
  // One more: the first process of the sandbox is ours.
  launch.group = groups_->plan({launch.policy.processes + 1, launch.policy.memory_bytes});
  const auto text = [](const std::string &s) { return s.empty() ? nullptr : s.c_str(); };
  for (std::size_t i = 0; i < launch.group.parts.size(); ++i) {
    const ServerGroups::Part &part = launch.group.parts[i];
    launch.plan.groups[i] = {
        part.parent,          part.folder.c_str(),    part.procs.c_str(), text(part.processes_file),
        text(part.processes), text(part.memory_file), text(part.memory)};
  }
}

bool Spawner::prepare_landlock(Launch &launch, Error *why) {
  auto ruleset = child_landlock(launch.view, launch.plan.namespaces, launch.cache);
  if (ruleset) {
    launch.landlock = std::move(*ruleset);
    if (const int abi = landlock_abi(); abi < 6) {
      lacks(launch, "landlock-scopes", "this kernel is older");
    }
    return true;
  }
  if (!options_.require && launch.plan.namespaces) {
    lacks("landlock-files", ruleset.error().text);
    return true;
  }
  if (!options_.require && launch.policy.mode == Mode::strict) {
    *why = ruleset.error();
    return false;
  }
  lacks(launch, "landlock-files", ruleset.error().text);
  return true;
}

void Spawner::fill_plan(Launch &launch) {
  ChildPlan &plan = launch.plan;
  plan.program = launch.program.c_str();
  plan.argv = launch.argv.data();
  plan.envp = launch.envp.data();
  plan.cwd = launch.cwd.empty() ? nullptr : launch.cwd.c_str();
  plan.in = launch.child_in.get();
  plan.out = launch.child_out.get();
  plan.err = launch.child_err.get();
  plan.own_network = !launch.policy.network;
  plan.uid_map = launch.uid_map.c_str();
  plan.gid_map = launch.gid_map.c_str();
  plan.mounts = launch.mounts.data();
  plan.mount_count = launch.mounts.size();
  plan.scratch_options = launch.scratch_options.c_str();
  plan.init_image = init_image_.get();
  plan.exit_report = launch.exit_report.get();
  plan.landlock = launch.landlock.get();
  plan.writable_processes = ::geteuid() != 0;
  plan.groups_needed = options_.require;
  plan.memory_bytes = launch.policy.memory_bytes;
  plan.processes = launch.policy.processes;
  plan.parent = ::getpid();
  static_assert(ChildPlan::most_kept >= 8);
  for (const int fd : {plan.in, plan.out, plan.err, plan.groups[0].parent, plan.groups[1].parent,
                       plan.init_image, plan.exit_report, plan.landlock}) {
    if (fd > 2) plan.kept[plan.kept_count++] = fd;
  }
  std::sort(plan.kept, plan.kept + plan.kept_count);
}

// Whether there is somebody to tell when a child is ready.
bool Spawner::can_go_on_meanwhile() {
  if (options_.reactor == nullptr) return false;
  if (watch_ != 0) return true;
  if (!starters_) starters_ = std::make_unique<Starters>();
  const auto finished = [](void *self, std::int32_t, std::uint32_t) {
    static_cast<Spawner *>(self)->on_finished();
  };
  return starters_->prepare() && options_.reactor->watch(this, starters_->finished_fd(), BH_FD_READ,
                                                         finished, this, &watch_) == BH_OK;
}

// True: it gets ready while we go on, as far as that has been waited for.
bool Spawner::begin(Launch &launch) {
  ChildPlan &plan = launch.plan;
  if (can_go_on_meanwhile() && starters_->start(&plan)) {
    // What a kernel may refuse altogether is known when the first child has done it.
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
  stacks.give(&plan);
  start_child(&plan);
  return false;
}

bh_status Spawner::start(std::unique_ptr<Launch> &launch, bh_child *out, bh_error *error) {
  ChildPlan &plan = launch->plan;
  launch->exit_report = above_standard(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!launch->exit_report) {
    return bh::fail(error, BH_E_LIMIT, launch->who() + "cannot be started: " + name_of(errno));
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
    bh::fail(error, BH_E_LIMIT, launch->who() + "cannot be watched: " + name_of(number));
  }
  // The child has its own of these.
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

void Spawner::note_lacks(const ChildPlan &plan) {
  if (plan.groups_failed) lacks("process-limit", "its control group cannot be entered");
  if (plan.namespaces && plan.failed == SpawnStep::none && !plan.processes_hidden)
    lacks("own-proc", "/proc cannot be mounted here");
}

// Its start is over.
void Spawner::settle(Child &child) {
  Launch &launch = *child.launch;
  note_lacks(launch.plan);
  if (launch.plan.failed != SpawnStep::none) {
    bh_error why = bh::make_error();
    const bh_status code = failure(launch, &why);
    child.failure = Error{code, std::string(bh::text(why))};
    can_do_without_namespaces(launch);  // the next start does
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
  const std::string who = launch.who(), why = name_of(number);
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
    default:
      if (options_.require && plan.namespaces && is_of_namespaces(plan.failed)) {
        return bh::fail(error, BH_E_UNSUPPORTED, who + not_all_of_it("namespaces (" + why + ")"));
      }
      return bh::fail(error, options_.require ? BH_E_UNSUPPORTED : BH_E_UNAVAILABLE,
                      who + "cannot be started: " + why + " (step " +
                          std::to_string(static_cast<int>(plan.failed)) + " of its start)");
  }
  if (number == ENOENT) {
    // The file may well be there: a script whose interpreter is not, or not in the sandbox.
    const bool there = launch.arguments[0].find('/') == std::string::npos ||
                       ::access(launch.program.c_str(), F_OK) == 0;
    return bh::fail(error, BH_E_NOT_FOUND,
                    who + (there ? "cannot be run: the interpreter in its first line does not exist"
                                 : "does not exist"));
  }
  const bool denied = number == EACCES || number == EPERM;
  return bh::fail(error, denied ? BH_E_DENIED : BH_E_IO, who + "cannot be run: " + why);
}

// ---- afterwards --------------------------------------------------------------------------------

bh_status Spawner::kill(bh_child_id id, std::int32_t signal) {
  Child *child = children_.get(id);
  if (child == nullptr) return BH_STALE;
  // Somebody else may have reaped it; then its number can be another process's by now.
  if (::syscall(SYS_pidfd_send_signal, child->pidfd.get(), 0, nullptr, 0) != 0) return BH_OK;
  // The first process passes a signal on to the server's group. In a PID namespace its own death
  // ends everything; else it has to be told, and listens as soon as the server has started.
  const bool told = signal == SIGKILL && !child->namespaces;
  const int sent = told ? ChildPlan::end_all : signal;
  ::syscall(SYS_pidfd_send_signal, child->pidfd.get(), sent, nullptr, 0);
  if (told) ::syscall(SYS_pidfd_send_signal, child->pidfd.get(), SIGCONT, nullptr, 0);
  return BH_OK;
}

// What is left of a server whose first process was killed, and could not see to it: children of
// ours that we have not started. Those of the program's own session are somebody else's.
void Spawner::end_orphans() {
  if (!options_.adopt) return;
  const auto is_orphan = [this, session = ::getsid(0)](pid_t pid) {
    bool ours = ::getsid(pid) == session;
    children_.for_each([&](std::uint64_t, const Child &child) { ours = ours || child.pid == pid; });
    return !ours;
  };
  if (const std::size_t ended = kill_children(is_orphan); ended != 0) {
    log(BH_LOG_INFO, std::to_string(ended) + " processes that an ended server left were killed");
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
    wait_for(child->launch->plan, SpawnPhase::over);  // its thread notices a moment later
    starters_->forget(&child->launch->plan);
    settle(*child);
  }
  // ECHILD: the program that embeds us has reaped it; then only its status is unknown.
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
    // NOLINTNEXTLINE(bugprone-sizeof-expression): of the member, which is a pointer
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
