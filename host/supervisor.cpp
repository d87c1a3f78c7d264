#include "supervisor.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "compartment/status_archive.hpp"
#include "paths.hpp"
#include "plan.hpp"
#include "plugin/secrets.hpp"
#include "plugin/services.hpp"
#include "plugin/text.hpp"
#include "profile/difference.hpp"

namespace bulkhead::program {
namespace {

constexpr std::size_t max_secret_bytes = 65'536;
constexpr std::uint64_t stop_margin_ms = 2'000;  // beyond what the compartments have themselves
// The end of the endpoint's process is heard of within this time of the ends of its trunks.
constexpr std::uint64_t trunk_patience_ms = 200;
constexpr int max_log_lines_per_turn = 64;

std::uint64_t jitter(std::uint64_t ms) {
  static std::minstd_rand random{std::random_device{}()};
  return ms - ms / 4 + random() % (ms / 2 + 1);
}

std::string describe_end(int status) {
  if (WIFSIGNALED(status)) {
    const char *name = ::sigabbrev_np(WTERMSIG(status));
    return std::string("was ended by SIG") + (name == nullptr ? "?" : name);
  }
  return "ended with exit code " + std::to_string(WEXITSTATUS(status));
}

bool pass_on(posix_spawn_file_actions_t *actions, int fd, int as) {
  return ::posix_spawn_file_actions_adddup2(actions, fd, as) == 0;
}

// Starts this same program as `bulkhead compartment NAME`; /proc/self/exe is it even when its file
// was replaced meanwhile. It gets the three sockets, and standard input and output if `stdio`.
int spawn_compartment(const std::string &name, bool stdio, int control, int request, int log,
                      pid_t *pid) {
  // The descriptors must lie above those they are put on.
  OwnedFd high[3];
  const int low[3] = {control, request, log};
  for (int i = 0; i < 3; ++i) high[i] = OwnedFd(::fcntl(low[i], F_DUPFD_CLOEXEC, 16));
  if (!high[0] || !high[1] || !high[2]) return errno;
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  if (!stdio) {
    ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    ::posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  }
  pass_on(&actions, high[2].get(), STDERR_FILENO);
  pass_on(&actions, high[0].get(), control::control_fd);
  pass_on(&actions, high[1].get(), control::request_fd);
  pass_on(&actions, high[2].get(), control::log_fd);
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  // A group of its own, so that the terminal's Ctrl-C reaches the supervisor alone.
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  std::string arguments[] = {"bulkhead", "compartment", name};
  char *const argv[] = {arguments[0].data(), arguments[1].data(), arguments[2].data(), nullptr};
  const int error = ::posix_spawn(pid, "/proc/self/exe", &actions, &attributes, argv, environ);
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&actions);
  return error;
}

bool same_plugins(const Slice &was, const Slice &is) {
  const auto same = [](const SlicePlugin &a, const SlicePlugin &b) {
    return a.kind == b.kind && same_use(a.use, b.use);
  };
  return was.privileges == is.privileges && std::equal(was.plugins.begin(), was.plugins.end(),
                                                       is.plugins.begin(), is.plugins.end(), same);
}

std::uint64_t resident_bytes(int pid) {
  const OwnedFd fd(
      ::open(("/proc/" + std::to_string(pid) + "/statm").c_str(), O_RDONLY | O_CLOEXEC));
  char text[128] = {};
  if (!fd || ::read(fd.get(), text, sizeof text - 1) <= 0) return 0;
  unsigned long long total = 0, resident = 0;
  if (std::sscanf(text, "%llu %llu", &total, &resident) != 2) return 0;
  return resident * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

// 0 when we may not look: the compartment has another user, and we are not root.
std::uint32_t count_descriptors(int pid) {
  DIR *folder = ::opendir(("/proc/" + std::to_string(pid) + "/fd").c_str());
  if (folder == nullptr) return 0;
  std::uint32_t count = 0;
  while (const dirent *entry = ::readdir(folder)) count += entry->d_name[0] != '.' ? 1 : 0;
  ::closedir(folder);
  return count;
}

}  // namespace

struct Supervisor::Child {
  // The two sockets end in the same process; whichever says so first, the pidfd has the last word.
  struct ControlEnd final : link::Channel::Receiver {
    Child *child = nullptr;
    void frame(link::Channel &, const link::Frame &frame, std::string_view payload,
               OwnedFd) override {
      child->supervisor->on_frame(*child, frame, payload);
    }
    void closed(link::Channel &, std::string_view) override {}
  };
  struct RequestEnd final : link::Channel::Receiver {
    Child *child = nullptr;
    void frame(link::Channel &, const link::Frame &frame, std::string_view payload,
               OwnedFd) override {
      child->supervisor->on_request(*child, frame, payload);
    }
    void closed(link::Channel &, std::string_view) override {}
  };

  Supervisor *supervisor = nullptr;
  Slice slice;
  ControlEnd control_end;
  RequestEnd request_end;
  std::unique_ptr<link::Channel> control, request;
  OwnedFd log_socket, pidfd;
  pid_t pid = 0;  // 0: not running
  bool ready = false, ever_ready = false;
  bool finished = false;
  bool given_up = false;
  bool wanted = true;     // by the profile
  bool replaced = false;  // it ends because it is to start with another slice
  bool retired = false;   // it ends, or has ended, because no profile wanted it
  bool taking_definitions = false;
  std::string failure;  // what it said before it ended
  std::uint32_t restarts = 0, failed_starts = 0, quick_ends = 0;
  std::uint64_t started_ns = 0, timer = 0, pid_watch = 0, log_watch = 0;
  std::uint64_t trunk = 0, lost_trunk = 0, trunk_timer = 0;
  control::Ready enforced;

  bool running() const noexcept { return pid != 0; }
};

Result<std::unique_ptr<Supervisor>> Supervisor::create(std::vector<Slice> slices,
                                                       std::string state_dir,
                                                       SupervisorHooks hooks) {
  auto reactor = Reactor::create();
  if (!reactor) return std::unexpected(reactor.error());
  std::unique_ptr<Supervisor> out(
      new Supervisor(std::move(slices), std::move(state_dir), std::move(hooks)));
  out->reactor_ = std::move(*reactor);
  return out;
}

Supervisor::Supervisor(std::vector<Slice> slices, std::string state_dir, SupervisorHooks hooks)
    : state_dir_(std::move(state_dir)), hooks_(std::move(hooks)), sealing_key_(random_key()) {
  for (Slice &slice : slices) children_.push_back(new_child(std::move(slice)));
}

std::unique_ptr<Supervisor::Child> Supervisor::new_child(Slice slice) {
  auto child = std::make_unique<Child>();
  child->supervisor = this;
  child->control_end.child = child->request_end.child = child.get();
  child->slice = std::move(slice);
  return child;
}

Supervisor::~Supervisor() {
  for (const auto &child : children_) {
    if (!child->running()) continue;
    ::kill(child->pid, SIGKILL);
    ::waitpid(child->pid, nullptr, 0);
  }
  for (const std::string &path : socket_files_) ::unlink(path.c_str());
  reactor_->forget(this);
}

void Supervisor::log(LogLevel level, std::string_view component, std::string_view text) const {
  if (hooks_.log) hooks_.log(level, component, text);
}

// ---- running ---------------------------------------------------------------------------------

Result<void> Supervisor::run() {
  for (const auto &child : children_) {
    if (auto started = start(*child); !started) return started;
  }
  while (!done_) {
    if (stop_requested_.load(std::memory_order_relaxed) && !stopping_) stop_all();
    reactor_->poll(-1);
  }
  return std::move(outcome_);
}

void Supervisor::request_stop() noexcept {
  stop_requested_.store(true);
  reactor_->wake();
}

void Supervisor::stop_all() {
  stopping_ = true;
  bool any = false;
  std::uint64_t grace = stop_margin_ms;
  for (const auto &child : children_) {
    reactor_->timer_cancel(child->timer);
    child->timer = 0;
    if (!child->running()) continue;
    any = true;
    link::Frame frame;
    frame.kind = control::stop;
    // The endpoint ends first: its lanes tell the others to end their servers in good order.
    if (child->slice.router || !children_.front()->running()) child->control->send(frame);
    grace = std::max(grace, 2 * child->slice.profile.limits.shutdown_grace_ms + stop_margin_ms);
  }
  if (!any) {
    done_ = true;
    return;
  }
  reactor_->timer_start(
      this, grace,
      [](void *arg) {
        for (const auto &child : static_cast<Supervisor *>(arg)->children_) {
          if (child->running()) ::kill(child->pid, SIGKILL);
        }
      },
      this);
}

// ---- one compartment -------------------------------------------------------------------------

Result<void> Supervisor::start(Child &child) {
  auto control = link::socket_pair();
  auto request = link::socket_pair();
  int packets[2];
  if (!control || !request ||
      ::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, packets) != 0) {
    return fail(BH_E_LIMIT, "compartment \"" + child.slice.name + "\": no descriptor is free");
  }
  child.log_socket = OwnedFd(packets[0]);
  const OwnedFd log_far(packets[1]);
  pid_t pid = 0;
  const int error =
      spawn_compartment(child.slice.name, child.slice.router && !child.slice.eager,
                        control->second.get(), request->second.get(), log_far.get(), &pid);
  if (error != 0) {
    return fail(BH_E_UNAVAILABLE,
                describe_errno("cannot start compartment \"" + child.slice.name + "\"", error));
  }
  child.pid = pid;
  child.pidfd = OwnedFd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  child.ready = child.finished = false;
  child.failure.clear();
  child.started_ns = reactor_->now_ns();
  child.control =
      std::make_unique<link::Channel>(*reactor_, std::move(control->first), child.control_end,
                                      control::max_frame_bytes, control::max_queue_bytes, false);
  child.request = std::make_unique<link::Channel>(*reactor_, std::move(request->first),
                                                  child.request_end, control::max_request_bytes,
                                                  control::max_request_bytes, false);
  reactor_->watch(
      this, child.log_socket.get(), BH_FD_READ,
      [](void *arg, std::int32_t, std::uint32_t) {
        auto &it = *static_cast<Child *>(arg);
        it.supervisor->on_log(it);
      },
      &child, &child.log_watch);
  reactor_->watch(
      this, child.pidfd.get(), BH_FD_READ,
      [](void *arg, std::int32_t, std::uint32_t) {
        auto &it = *static_cast<Child *>(arg);
        it.supervisor->ended(it);
      },
      &child, &child.pid_watch);
  if (child.slice.router) {
    child.slice.sealing_key = sealing_key_;
    ++child.slice.epoch;
  }
  std::string bytes = to_bytes(child.slice);
  link::Frame frame;
  frame.kind = control::slice;
  child.control->send(frame, bytes);
  ::explicit_bzero(bytes.data(), bytes.size());
  join(child);
  return {};
}

// A new link between the endpoint and a compartment, or all of them, once both run.
void Supervisor::join(Child &child) {
  Child &endpoint = *children_.front();
  if (!endpoint.running()) return;
  for (const auto &other : children_) {
    if (other->slice.router || (&child != &endpoint && other.get() != &child)) continue;
    if (other->given_up) tell_gave_up(*other);
    if (!other->running()) continue;
    auto pair = link::socket_pair();
    if (!pair) return log(LogLevel::error, "supervisor", pair.error().text);
    link::Frame frame;
    frame.kind = control::trunk;
    frame.value = other->trunk = ++last_trunk_;
    endpoint.control->send(frame, other->slice.name, pair->first.get());
    other->control->send(frame, endpoint.slice.name, pair->second.get());
  }
}

// A trunk that ends with the endpoint is replaced when there is another one. One that ends without
// is broken, or its ends do not understand each other: the compartment starts from the beginning.
void Supervisor::on_trunk_lost(Child &child, std::uint64_t number) {
  if (number != child.trunk || child.trunk_timer != 0) return;
  child.lost_trunk = number;
  child.trunk_timer = reactor_->timer_start(
      this, trunk_patience_ms,
      [](void *arg) {
        auto &it = *static_cast<Child *>(arg);
        it.trunk_timer = 0;
        const Supervisor &self = *it.supervisor;
        const bool replaced = it.trunk != it.lost_trunk || !self.children_.front()->running();
        const bool ending = it.replaced || !it.wanted || self.stopping_;
        if (!it.running() || replaced || ending) return;
        self.log(LogLevel::error, it.slice.name, "its link with the endpoint has broken");
        ::kill(it.pid, SIGKILL);
      },
      &child);
}

void Supervisor::on_frame(Child &child, const link::Frame &frame, std::string_view payload) {
  switch (frame.kind) {
    case control::ready:
      if (child.ready || !from_bytes(payload, &child.enforced)) return;
      child.ready = true;
      child.failed_starts = 0;
      for (const std::string &part : child.enforced.missing) {
        log(LogLevel::warn, child.slice.name, "the kernel cannot enforce: " + part);
      }
      child.ever_ready = true;
      return check_all_ready();
    case control::failed:
      child.failure = std::string(payload.substr(0, control::max_log_bytes));
      return;
    case control::status: {
      HostStatus fresh;
      if (!child.slice.router || !from_bytes(payload, &fresh)) return;
      status_ = std::move(fresh);
      status_known_ = true;
      if (hooks_.on_status) hooks_.on_status();
      if (frame.code == control::asked) tell_status();
      return;
    }
    case control::definitions_taken:
      if (!std::exchange(child.taking_definitions, false)) return;
      if (--definitions_awaited_ == 0) send_apply();
      return;
    case control::applied: {
      if (!child.slice.router || !apply_done_) return;
      const auto status = static_cast<bh_status>(frame.code);
      ApplyReport report;
      if (status != BH_OK) return finish_apply(fail(status, std::string(payload)));
      if (!from_bytes(payload, &report)) {
        return finish_apply(fail(BH_E_INTERNAL, "the endpoint gave no report"));
      }
      return finish_apply(std::move(report));
    }
    case control::trunk_lost:
      return on_trunk_lost(child, frame.value);
    case control::finished:
      child.finished = child.slice.router;
      return;
    default:
      return;
  }
}

// ---- another profile -------------------------------------------------------------------------

void Supervisor::apply(std::vector<Slice> slices, std::function<void(Result<ApplyReport>)> done) {
  if (apply_done_) return done(fail(BH_E_LIMIT, "a reload is under way"));
  if (stopping_ || !all_ready_) return done(fail(BH_E_UNAVAILABLE, "the gateway is not running"));
  apply_done_ = std::move(done);
  for (const auto &child : children_) child->wanted = false;
  for (Slice &slice : slices) {
    const auto at = std::find_if(children_.begin(), children_.end(), [&](const auto &child) {
      return child->slice.name == slice.name;
    });
    if (at != children_.end()) {
      apply_to(**at, std::move(slice));
      continue;
    }
    Child &made = *children_.emplace_back(new_child(std::move(slice)));
    if (auto started = start(made); !started) {
      log(LogLevel::error, made.slice.name, started.error().text);
      schedule(made);
    }
  }
  if (definitions_awaited_ == 0) send_apply();
}

void Supervisor::apply_to(Child &child, Slice slice) {
  child.wanted = true;
  slice.epoch = child.slice.epoch;
  const bool same = same_plugins(child.slice, slice);
  const bool other_servers = child.slice.definitions != slice.definitions;
  child.slice = std::move(slice);
  if (child.slice.router) return;
  if (std::exchange(child.retired, false)) {  // an earlier profile had no use for it
    if (child.running()) {
      child.replaced = true;
    } else if (!child.given_up) {
      start_again(child);
    }
    return;
  }
  if (!child.running()) return;  // it is started again with what it is now
  link::Frame frame;
  if (!same) {
    frame.kind = control::stop;  // it is started again with what it is now
    child.replaced = true;
    child.control->send(frame);
  } else if (other_servers) {
    frame.kind = control::definitions;
    child.taking_definitions = true;
    ++definitions_awaited_;
    child.control->send(frame, to_bytes(child.slice.definitions));
  }
}

void Supervisor::send_apply() {
  Child &endpoint = *children_.front();
  if (!endpoint.running()) {
    return finish_apply(fail(BH_E_UNAVAILABLE,
                             "the endpoint is being started again, and starts "
                             "with the new profile"));
  }
  link::Frame frame;
  frame.kind = control::apply;
  endpoint.control->send(frame, to_bytes(Apply{endpoint.slice.profile, endpoint.slice.remote}));
}

// What nobody needs any more ends in good order, after the endpoint has let go of it.
void Supervisor::finish_apply(Result<ApplyReport> result) {
  if (!apply_done_) return;
  for (const auto &child : children_) {
    if (child->wanted) continue;
    reactor_->timer_cancel(child->timer);
    child->timer = 0;
    child->retired = true;
    if (!child->running()) continue;
    link::Frame frame;
    frame.kind = control::stop;
    child->control->send(frame);
  }
  std::exchange(apply_done_, nullptr)(std::move(result));
}

// ---- looking ---------------------------------------------------------------------------------

void Supervisor::check_all_ready() {
  if (all_ready_) return;
  for (const auto &child : children_) {
    if (!child->ever_ready && !child->given_up) return;
  }
  all_ready_ = true;
  if (hooks_.on_ready) hooks_.on_ready();
  if (status_known_ && hooks_.on_status) hooks_.on_status();
}

void Supervisor::ask_status(std::function<void()> done) {
  status_asked_.push_back(std::move(done));
  if (!children_.front()->ready) return tell_status();
  if (status_asked_.size() > 1) return;  // the answer under way is for all
  link::Frame frame;
  frame.kind = control::status_wanted;
  children_.front()->control->send(frame);
}

void Supervisor::tell_status() {
  for (const auto &done : std::exchange(status_asked_, {})) done();
}

void Supervisor::on_log(Child &child) {
  char packet[control::max_log_bytes + 512];
  for (int i = 0; i < max_log_lines_per_turn; ++i) {
    const ssize_t got = ::recv(child.log_socket.get(), packet, sizeof packet, 0);
    if (got <= 0) {
      if (got == 0) reactor_->unwatch(std::exchange(child.log_watch, 0));
      return;
    }
    const std::string_view text(packet, static_cast<std::size_t>(got));
    control::LogLine line;
    if (text.front() != control::log_mark) {
      log(LogLevel::warn, child.slice.name, text);
    } else if (from_bytes(text.substr(1), &line)) {
      const auto level = std::clamp(line.level, 0, static_cast<std::int32_t>(LogLevel::error));
      log(static_cast<LogLevel>(level), line.component, line.text);
    }
  }
}

void Supervisor::ended(Child &child) {
  int status = 0;
  if (::waitpid(child.pid, &status, WNOHANG) != child.pid) return;
  on_log(child);  // its last words
  reactor_->unwatch(std::exchange(child.pid_watch, 0));
  if (child.log_watch != 0) reactor_->unwatch(std::exchange(child.log_watch, 0));
  const bool was_ready = child.ready;
  child.pid = 0;
  child.ready = false;
  if (std::exchange(child.taking_definitions, false) && --definitions_awaited_ == 0) send_apply();
  if (child.slice.router) {
    tell_status();
    finish_apply(fail(BH_E_IO, "the endpoint has ended meanwhile"));
  }
  child.pidfd.reset();
  child.log_socket.reset();
  child.request.reset();
  child.control.reset();
  if (stopping_ || child.finished) {
    if (child.slice.router && !stopping_) stop_all();
    const bool any = std::any_of(children_.begin(), children_.end(),
                                 [](const auto &other) { return other->running(); });
    if (!any) done_ = true;
    if (child.slice.router) stop_others();
    return;
  }
  if (!child.wanted) return;  // and stays as a name without a process
  if (std::exchange(child.replaced, false)) return start_again(child);
  std::string reason = child.failure.empty() ? describe_end(status) : child.failure;
  log(LogLevel::error, child.slice.name,
      was_ready || child.failure.empty() ? "the compartment " + describe_end(status) : reason);
  if (!was_ready && ++child.failed_starts >= max_failed_starts) return give_up(child, reason);
  // What the profile demands and cannot be had is the person's to repair, not to be tried again.
  if (!was_ready && !all_ready_ && !child.failure.empty()) {
    outcome_ = fail(BH_E_UNAVAILABLE, reason);
    return stop_all();
  }
  schedule(child);
}

void Supervisor::stop_others() {
  link::Frame frame;
  frame.kind = control::stop;
  for (const auto &child : children_) {
    if (child->running()) child->control->send(frame);
  }
}

void Supervisor::schedule(Child &child) {
  ++child.restarts;
  const std::uint64_t lived_ms = (reactor_->now_ns() - child.started_ns) / 1'000'000u;
  child.quick_ends = lived_ms >= steady_ms ? 0 : child.quick_ends + 1;
  const std::uint32_t doublings = std::min<std::uint32_t>(child.quick_ends, 8);
  const std::uint64_t longest = std::min(max_backoff_ms, child.slice.profile.limits.retry_max_ms);
  const std::uint64_t delay =
      child.quick_ends <= 1 ? 0 : jitter(std::min(min_backoff_ms << (doublings - 2), longest));
  child.timer = reactor_->timer_start(
      this, delay,
      [](void *arg) {
        auto &it = *static_cast<Child *>(arg);
        it.timer = 0;
        it.supervisor->start_again(it);
      },
      &child);
}

void Supervisor::start_again(Child &child) {
  auto started = start(child);
  if (started) return;
  log(LogLevel::error, child.slice.name, started.error().text);
  schedule(child);
}

void Supervisor::give_up(Child &child, const std::string &reason) {
  child.given_up = true;
  child.failure = reason;
  log(LogLevel::error, child.slice.name,
      "it has ended " + std::to_string(max_failed_starts) +
          " times without ever being ready, and is not started again: " + reason);
  if (child.slice.router) {
    outcome_ = fail(BH_E_UNAVAILABLE, reason);
    return stop_all();
  }
  if (children_.front()->running()) tell_gave_up(child);
  check_all_ready();
}

void Supervisor::tell_gave_up(const Child &child) {
  link::Frame frame;
  frame.kind = control::gave_up;
  children_.front()->control->send(frame,
                                   to_bytes(control::GaveUp{child.slice.name, child.failure}));
}

// ---- what compartments ask for ---------------------------------------------------------------

void Supervisor::on_request(Child &child, const link::Frame &frame, std::string_view payload) {
  link::Frame answer;
  answer.kind = frame.kind;
  const auto refuse = [&](const Error &error) {
    answer.code = static_cast<std::uint32_t>(error.code);
    child.request->send(answer, error.text);
  };
  if (frame.kind == control::listen) {
    control::Listen wanted;
    if (!from_bytes(payload, &wanted) || !child.slice.router || child.ready) {
      return refuse({BH_E_DENIED, "only a gateway that is starting may listen"});
    }
    const auto fd = listen(wanted);
    if (!fd) return refuse(fd.error());
    child.request->send(answer, std::string_view(), fd->get());
    return;
  }
  control::Secret secret;
  if (!from_bytes(payload, &secret) || !holds(child, secret.instance) ||
      !is_plain_name(secret.name)) {
    return refuse({BH_E_DENIED, "that instance is not in this compartment"});
  }
  const auto folder = private_folder(state_dir_, "secrets", secret.instance);
  if (!folder) return refuse(folder.error());
  if (frame.kind == control::get_secret) {
    const auto value = read_secret(*folder, secret.name, max_secret_bytes);
    if (!value) return refuse(value.error());
    child.request->send(answer, *value);
  } else if (frame.kind == control::put_secret) {
    if (secret.value.size() > max_secret_bytes) return refuse({BH_E_LIMIT, "it is too large"});
    const auto done = write_secret(*folder, secret.name, secret.value);
    if (!done) return refuse(done.error());
    child.request->send(answer);
  }
}

// Compartments see only the secrets of their plugins. A tools plugin may have the name of a
// transport ("http"); the secrets of that name are the endpoint's.
bool Supervisor::holds(const Child &child, const std::string &instance) const {
  const auto is = [&](const PluginUse &use) { return use.id == instance; };
  const Profile &profile = children_.front()->slice.profile;
  const bool endpoints = std::any_of(profile.transports.begin(), profile.transports.end(), is) ||
                         std::any_of(profile.policies.begin(), profile.policies.end(), is) ||
                         std::any_of(profile.telemetry.begin(), profile.telemetry.end(), is);
  if (child.slice.router || endpoints) return child.slice.router && endpoints;
  return std::any_of(child.slice.plugins.begin(), child.slice.plugins.end(),
                     [&](const SlicePlugin &plugin) { return is(plugin.use); });
}

Result<OwnedFd> Supervisor::listen(const control::Listen &wanted) {
  OwnedFd &kept = listeners_[wanted.address];
  if (!kept) {
    auto opened = open_listener(wanted.address, wanted.as_configured);
    if (!opened) return std::unexpected(opened.error());
    kept = std::move(*opened);
    remember_socket_file(wanted.address, &socket_files_);
  }
  OwnedFd copy(::fcntl(kept.get(), F_DUPFD_CLOEXEC, 3));
  if (!copy) return fail(BH_E_LIMIT, "no descriptor is free");
  return copy;
}

// ---- looking ---------------------------------------------------------------------------------

std::vector<CompartmentStatus> Supervisor::compartments() const {
  std::vector<CompartmentStatus> out;
  for (const auto &child : children_) {
    if (!child->wanted && !child->running()) continue;
    CompartmentStatus one;
    one.name = child->slice.name;
    one.pid = child->pid;
    one.restarts = child->restarts;
    one.in_force = child->enforced.in_force;
    one.missing = child->enforced.missing;
    if (child->given_up) {
      one.state = "failed: " + child->failure;
    } else if (!child->running()) {
      one.state = "waiting";
    } else {
      one.state = child->ready ? "running" : "starting";
      one.memory_bytes = resident_bytes(child->pid);
      one.descriptors = count_descriptors(child->pid);
    }
    out.push_back(std::move(one));
  }
  return out;
}

}  // namespace bulkhead::program
