#include "sandbox/spawn.hpp"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>

#include "bulkhead/cpp/basics.hpp"
#include "sandbox/child.hpp"
#include "sandbox/child_filter.hpp"
#include "sandbox/child_image.hpp"
#include "sandbox/child_landlock.hpp"
#include "sandbox/child_view.hpp"

namespace bulkhead {
namespace {

using Mode = ChildPolicy::Mode;

// Each of the two child sides runs on one; they call shallowly and hold one path at most.
constexpr std::size_t stack_bytes = 64u << 10;

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
  OwnedFd in, out, err, child_in, child_out, child_err, exit_report, landlock;
  ChildPlan plan;

  std::string who() const {
    return "command \"" + arguments[0] + "\" of server \"" + server + "\" ";
  }
};

Spawner::Spawner(SpawnOptions options)
    : options_(std::move(options)), namespaces_(options_.namespaces), groups_(options_.groups) {}

Spawner::~Spawner() {
  children_.for_each([this](std::uint64_t id, Child &child) {
    kill(id, SIGKILL);
    while (::waitpid(child.pid, nullptr, 0) < 0 && errno == EINTR) {
    }
  });
}

void Spawner::log(std::int32_t level, std::string_view text) const {
  if (options_.log) options_.log(level, text);
}

void Spawner::lacks(std::string_view what, std::string_view why) {
  if (std::find(missing_.begin(), missing_.end(), what) != missing_.end()) return;
  missing_.emplace_back(what);
  log(BH_LOG_WARN, "servers are confined less than they could be: " + std::string(what) +
                       " is missing (" + std::string(why) + ")");
}

// ---- starting ----------------------------------------------------------------------------------

bh_status Spawner::spawn(const bh_spawn &request, bh_child *out, bh_error *error) {
  bool plain = request.argc > 0 && plain_text(request.program) && plain_text(request.cwd);
  for (std::uint32_t i = 0; i < request.argc; ++i) plain = plain && plain_text(request.argv[i]);
  for (std::uint32_t i = 0; i < request.envc; ++i) plain = plain && plain_text(request.env[i]);
  if (!plain || request.program.n == 0) {
    return bh::fail(error, BH_E_INVALID, "a child needs a program, and texts without NUL");
  }
  Launch launch;
  launch.server = bh::view(request.server);
  launch.program = bh::view(request.program);
  launch.cwd = bh::view(request.cwd);
  for (std::uint32_t i = 0; i < request.argc; ++i)
    launch.arguments.emplace_back(bh::view(request.argv[i]));
  for (std::uint32_t i = 0; i < request.envc; ++i)
    launch.environment.emplace_back(bh::view(request.env[i]));
  auto policy = parse_child_policy(launch.server, bh::view(request.definition));
  if (!policy) return bh::fail(error, policy.error().code, policy.error().text);
  launch.policy = std::move(*policy);
  bh_status status = prepare(launch, error);
  if (status != BH_OK) return status;
  status = start(launch, out, error);
  if (status == BH_OK || !can_do_without_namespaces(launch)) return status;
  // Once more, and from now on, without them.
  Launch again;
  again.server = launch.server;
  again.program = launch.program;
  again.cwd = bh::view(request.cwd);
  again.arguments = std::move(launch.arguments);
  again.environment = std::move(launch.environment);
  again.policy = std::move(launch.policy);
  status = prepare(again, error);
  return status != BH_OK ? status : start(again, out, error);
}

bool Spawner::can_do_without_namespaces(Launch &launch) {
  if (!launch.plan.namespaces || options_.require) return false;
  const SpawnStep step = launch.plan.failed;
  const bool kernel = step == SpawnStep::clone || step == SpawnStep::identity ||
                      step == SpawnStep::mounts || step == SpawnStep::network ||
                      step == SpawnStep::init;
  if (!kernel || launch.plan.error == ENOMEM || launch.plan.error == EAGAIN) return false;
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

std::vector<ChildMount> mounts_of(const ChildView &view) {
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
    mount.optional = step.kind == ViewStep::Kind::processes;
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
  if (!stacks_) stacks_ = std::make_unique<std::byte[]>(2 * stack_bytes);
  ChildPlan &plan = launch.plan;
  plan.confined = launch.policy.mode != Mode::off;
  plan.namespaces = plan.confined && namespaces_;
  if (plan.confined && !namespaces_ && options_.require) {
    return bh::fail(error, BH_E_UNSUPPORTED,
                    launch.who() +
                        "is not started: this machine has no user namespaces for its "
                        "sandbox, and isolation.mode is \"require\"");
  }
  if (plan.confined && !namespaces_ && !launch.policy.network) {
    return bh::fail(error, BH_E_UNSUPPORTED,
                    launch.who() +
                        "is not started: without namespaces it cannot be kept from the "
                        "network");
  }
  if (plan.namespaces && !init_image_) {
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
    view.cache = make_cache_folder(options_.state_dir, launch.server);
    view.user = ::geteuid();
    view.own = options_.own;
    if (!options_.state_dir.empty()) view.own.push_back(options_.state_dir);
    launch.view = plan_view(view);
    launch.cache = view.cache;
    for (const std::string &path : launch.view.ignored) {
      log(BH_LOG_WARN, "server \"" + launch.server + "\": " + path + "; it is not granted");
    }
    if (!plan.namespaces) point_caches(view.cache, &launch.environment);
    launch.mounts = mounts_of(launch.view);
    Error why;
    if (!prepare_landlock(launch, &why)) {
      return bh::fail(error, why.code, launch.who() + "is not started: " + why.text);
    }
    prepare_groups(launch);
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

void Spawner::prepare_groups(Launch &launch) {
  if (!groups_) groups_ = std::make_shared<ServerGroups>();
  if (::geteuid() == 0 && !groups_->counts_processes()) {
    lacks("process-limit", "no control group can be made here, and nothing else counts root's");
  }
  // One more: the first process of the sandbox is ours.
  launch.group = groups_->make({launch.policy.processes + 1, launch.policy.memory_bytes});
  for (std::size_t i = 0; i < launch.group.entries.size(); ++i) {
    launch.plan.groups[i] = launch.group.entries[i].get();
  }
}

bool Spawner::prepare_landlock(Launch &launch, Error *why) {
  auto ruleset = child_landlock(launch.view, launch.plan.namespaces, launch.cache);
  if (ruleset) {
    launch.landlock = std::move(*ruleset);
    if (const int abi = landlock_abi(); abi < 6) lacks("landlock-scopes", "this kernel is older");
    return true;
  }
  if (!options_.require && launch.plan.namespaces) {
    lacks("landlock-files", ruleset.error().text);
    return true;
  }
  if (options_.require || launch.policy.mode == Mode::strict) {
    *why = ruleset.error();
    return false;
  }
  lacks("landlock-files", ruleset.error().text);
  return true;
}

bh_status Spawner::start(Launch &launch, bh_child *out, bh_error *error) {
  ChildPlan &plan = launch.plan;
  if (plan.namespaces) {
    launch.exit_report = above_standard(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!launch.exit_report) {
      return bh::fail(error, BH_E_LIMIT, launch.who() + "cannot be started: " + name_of(errno));
    }
  }
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
  plan.memory_bytes = launch.policy.memory_bytes;
  plan.processes = launch.policy.processes;
  plan.parent = ::getpid();
  // 16: what the processors' calling conventions ask of a stack.
  plan.first_stack = stacks_.get() + stack_bytes;
  plan.second_stack = stacks_.get() + 2 * stack_bytes;
  int pidfd = -1;
  const pid_t pid = start_child(&plan, &pidfd);
  if (pid < 0) {
    if (groups_) groups_->remove(launch.group.name);
    return failure(launch, error);
  }
  if (plan.groups_failed) lacks("process-limit", "its control group cannot be entered");
  if (plan.namespaces && !plan.processes_hidden) lacks("own-proc", "/proc cannot be mounted here");
  Child child;
  child.pid = pid;
  child.pidfd = OwnedFd(pidfd);
  child.exit_report = std::move(launch.exit_report);
  child.group = std::move(launch.group.name);
  const int shared = ::fcntl(pidfd, F_DUPFD_CLOEXEC, 3);
  out->pid = pid;
  out->id = children_.insert(std::move(child));
  if (shared < 0) {
    const int number = errno;
    kill(out->id, SIGKILL);
    while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
    }
    children_.erase(out->id);
    return bh::fail(error, BH_E_LIMIT, launch.who() + "cannot be watched: " + name_of(number));
  }
  out->pidfd = shared;
  out->in = launch.in.release();
  out->out = launch.out.release();
  out->err = launch.err.release();
  return BH_OK;
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
  if (!child->exit_report && signal == SIGKILL) kill_below(child->pid);
  // In a namespace the first process passes a signal on to the server's group, and with its own
  // death everything ends. Else the child leads the group.
  if (!child->exit_report) ::kill(-child->pid, signal);
  ::syscall(SYS_pidfd_send_signal, child->pidfd.get(), signal, nullptr, 0);
  return BH_OK;
}

// Without a PID namespace: also those that left the group, as far as they still hang below it.
void Spawner::kill_below(pid_t pid) const {
  std::vector<pid_t> found{pid};
  for (std::size_t i = 0; i < found.size() && found.size() < 4096; ++i) {
    const std::string name =
        "/proc/" + std::to_string(found[i]) + "/task/" + std::to_string(found[i]) + "/children";
    const OwnedFd file(::open(name.c_str(), O_RDONLY | O_CLOEXEC));
    char text[4096];
    const ssize_t n = file ? ::read(file.get(), text, sizeof text - 1) : 0;
    if (n <= 0) continue;
    text[n] = '\0';
    char *at = text;
    for (long child = std::strtol(at, &at, 10); child > 0; child = std::strtol(at, &at, 10)) {
      found.push_back(static_cast<pid_t>(child));
    }
  }
  for (std::size_t i = 1; i < found.size(); ++i) ::kill(found[i], SIGKILL);
}

bh_status Spawner::reap(bh_child_id id, bh_child_end *out) {
  Child *child = children_.get(id);
  if (child == nullptr) return BH_STALE;
  siginfo_t info{};
  const int result =
      ::waitid(P_PIDFD, static_cast<id_t>(child->pidfd.get()), &info, WEXITED | WNOHANG);
  if (result == 0 && info.si_pid == 0) return BH_PENDING;
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
  if (groups_) groups_->remove(child->group);
  children_.erase(id);
  return BH_OK;
}

}  // namespace bulkhead
