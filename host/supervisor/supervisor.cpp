// Starts, connects, monitors, restarts and stops the compartments.
#include "supervisor/supervisor.hpp"

#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <random>

#include "base/idle_memory.hpp"
#include "common/paths.hpp"
#include "common/signals.hpp"
#include "compartment/status_archive.hpp"
#include "profile/protected_paths.hpp"
#include "route/ledger.hpp"
#include "sandbox/server_groups.hpp"
#include "supervisor/compartment_process.hpp"
#include "supervisor/plan.hpp"
#include "supervisor/supervisor_child.hpp"
#include "swap/plugin_store.hpp"

namespace bulkhead::program {
namespace {

// When the endpoint exits, its trunks close before the supervisor detects the exit. If no exit is
// detected within this time, the trunk is considered broken.
constexpr std::uint64_t trunk_patience_ms = 200;

std::uint64_t jitter(std::uint64_t ms) {
  static std::minstd_rand random{std::random_device{}()};
  return ms - ms / 4 + random() % (ms / 2 + 1);
}

bool parse_ready(std::string_view payload, control::Ready *out) {
  control::Ready said;
  if (payload.size() > control::max_ready_bytes || !from_bytes(payload, &said)) return false;
  if (std::max(said.in_force.size(), said.missing.size()) > control::max_ready_parts) return false;
  *out = std::move(said);
  return true;
}

}  // namespace

Result<std::unique_ptr<Supervisor>> Supervisor::create(std::vector<Slice> slices,
                                                       std::string state_dir,
                                                       SupervisorHooks hooks) {
  auto reactor = Reactor::create();
  if (!reactor) return std::unexpected(reactor.error());
  std::unique_ptr<Supervisor> out(
      new Supervisor(std::move(slices), std::move(state_dir), std::move(hooks)));
  out->reactor_ = std::move(*reactor);
  out->create_writers();
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
    if (child->slice.privileges.exec) ServerGroups::remove_leftovers();
  }
  for (const std::string &path : socket_files_) {
    ::unlink(path.c_str());
    unregister_file(path);
  }
  reactor_->forget(this);
}

void Supervisor::log(LogLevel level, std::string_view component, std::string_view text) const {
  if (hooks_.log) hooks_.log(level, component, text);
}

// ---- all compartments ------------------------------------------------------------------------

Result<void> Supervisor::run() {
  make_hidden_folders();
  for (const auto &child : children_) {
    if (auto started = start(*child); !started) return started;
  }
  ping_all();
  reactor_->set_idle_handler(release_idle_memory);
  while (!done_) {
    if (stop_requested_.load(std::memory_order_relaxed) && !stopping_) stop_all();
    reactor_->poll(-1);
  }
  return std::move(outcome_);
}

// Creates the directories of records and of swapped plugins. They are hidden from servers and must
// exist before the launcher starts, because only existing directories can be hidden.
void Supervisor::make_hidden_folders() const {
  if (state_dir_.empty()) return;
  for (const auto &child : children_) {
    for (const std::string &path : child->slice.privileges.hide) {
      const auto is_it = [&](std::string_view folder) {
        return path == state_dir_ + std::string(folder);
      };
      if (!is_it(plugin_store_folder) &&
          std::none_of(std::begin(record_folders), std::end(record_folders), is_it)) {
        continue;
      }
      std::error_code ec;
      std::filesystem::create_directories(state_dir_, ec);
      ::mkdir(path.c_str(), 0700);
    }
  }
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
    // If the endpoint is running, the supervisor stops only the endpoint. The endpoint then stops
    // the servers in the other compartments in order.
    if (child->slice.router || !children_.front()->running()) child->control->send(frame);
    // In-flight calls get one grace period. Servers get two: one after their input is closed, and
    // one after SIGTERM.
    grace = std::max(grace, 3 * child->slice.profile.limits.shutdown_grace_ms + stop_margin_ms);
  }
  if (!any) {
    done_ = true;
    return;
  }
  reactor_->timer_start(this, grace, bh::callback(this, [](Supervisor &self) {
                          for (const auto &child : self.children_) {
                            if (child->running()) ::kill(child->pid, SIGKILL);
                          }
                        }));
}

// ---- one compartment -------------------------------------------------------------------------

Result<void> Supervisor::start(Child &child) {
  if (child.slice.privileges.exec) note_protected_folders(&child.slice.profile);
  auto control = link::socket_pair();
  auto request = link::socket_pair();
  int packets[2];
  if (!control || !request ||
      ::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, packets) != 0) {
    return fail(BH_E_LIMIT,
                "compartment \"" + child.slice.name + "\": no file descriptor is available");
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
  if (!watch(child)) {
    kill_unwatched(child);
    return fail(BH_E_LIMIT,
                "compartment \"" + child.slice.name + "\": no file descriptor is available");
  }
  child.ready = child.finished = child.replaced = child.ending = child.secret_pending = false;
  child.failure.clear();
  child.hung = false;
  child.started_ns = reactor_->now_ns();
  child.unanswered = 0;
  child.grace_ms = child.slice.profile.limits.shutdown_grace_ms;
  reactor_->timer_cancel(std::exchange(child.trunk_timer, 0));
  child.control =
      std::make_unique<link::Channel>(*reactor_, std::move(control->first), child.control_end,
                                      control::max_frame_bytes, control::max_queue_bytes, false);
  child.control->accept(control::max_answer_bytes);
  const bool service = child.slice.service;
  child.request = std::make_unique<link::Channel>(
      *reactor_, std::move(request->first), child.request_end,
      service ? max_service_frame_bytes : control::max_request_bytes,
      service ? max_service_queue_bytes : control::max_request_bytes, service);
  child.questions = 0;
  child.life = std::make_shared<const pid_t>(pid);
  if (child.slice.router) {
    child.slice.sealing_key = sealing_key_;
    ++child.slice.epoch;
  }
  std::string bytes = to_bytes(child.strict ? strict(child.slice) : child.slice);
  link::Frame frame;
  frame.kind = control::slice;
  child.control->send(frame, bytes, descriptor_for(child));
  ::explicit_bzero(bytes.data(), bytes.size());
  join(child);
  set_deadline(child);
  return {};
}

// Returns a descriptor that the process of `child` needs but cannot open itself, or -1.
int Supervisor::descriptor_for(const Child &child) {
  if (child.slice.service) return service_.listener;
  if (!child.slice.router) return -1;
  if (!ledger_) {
    auto made = Ledger::make();
    if (made) {
      ledger_ = std::move(*made);
    } else {
      log(LogLevel::warn, "supervisor", made.error().text);
    }
  }
  return ledger_.get();
}

// Watches the log socket and the process.
bool Supervisor::watch(Child &child) {
  const bh_status log =
      reactor_->watch(this, child.log_socket.get(), BH_FD_READ,
                      bh::fd_callback(&child,
                                      [](Child &it, std::uint32_t events) {
                                        it.supervisor->on_log(it, (events & BH_FD_ERROR) != 0);
                                      }),
                      &child.log_watch);
  const bh_status end = reactor_->watch(
      this, child.pidfd.get(), BH_FD_READ,
      bh::fd_callback(&child, [](Child &it) { it.supervisor->ended(it); }), &child.pid_watch);
  return log == BH_OK && end == BH_OK;
}

// Kills a process that cannot be watched.
void Supervisor::kill_unwatched(Child &child) {
  reactor_->unwatch(std::exchange(child.pid_watch, 0));
  reactor_->unwatch(std::exchange(child.log_watch, 0));
  ::kill(child.pid, SIGKILL);
  ::waitpid(child.pid, nullptr, 0);
  child.pid = 0;
  child.pidfd.reset();
  child.log_socket.reset();
}

// Connects the endpoint and the compartment of `child` if both processes are running. If `child` is
// the endpoint, connects it to all compartments.
void Supervisor::join(Child &child) {
  Child &endpoint = *children_.front();
  if (!endpoint.running()) return;
  for (const auto &other : children_) {
    if (other->slice.router || other->slice.service || other->leaving ||
        other->replaces != nullptr || (&child != &endpoint && other.get() != &child))
      continue;
    if (other->telemetry != 0) send_telemetry_wants(*other);
    if (other->given_up) report_given_up(*other);
    if (!other->running()) continue;
    // Without a link, the process would never receive requests.
    if (!connect(*other)) ::kill(other->pid, SIGKILL);
  }
}

// Connects the endpoint and the process of `child`, which must be running. Returns false if no
// descriptor is available.
bool Supervisor::connect(Child &child) {
  const Child &endpoint = *children_.front();
  auto pair = link::socket_pair();
  if (!pair) {
    log(LogLevel::error, "supervisor", pair.error().text);
    return false;
  }
  link::Frame frame;
  frame.kind = control::trunk;
  frame.value = child.trunk = ++last_trunk_;
  if (child.replaces != nullptr) {
    frame.code = 1;
    frame.plugin = static_cast<std::uint32_t>(apply_number_);
  }
  // If a frame cannot be sent, the process is not reading its frames, so it is killed and
  // restarted.
  if (endpoint.control->send(frame, child.slice.name, pair->first.get()) != BH_OK) {
    ::kill(endpoint.pid, SIGKILL);
  }
  if (child.control->send(frame, endpoint.slice.name, pair->second.get()) != BH_OK) {
    ::kill(child.pid, SIGKILL);
  }
  return true;
}

// If the trunk has closed because the endpoint exited, the new endpoint process gets a new trunk.
// If the endpoint is still running, the trunk is broken or the two processes are incompatible, so
// the compartment is restarted.
void Supervisor::on_trunk_lost(Child &child, std::uint64_t number) {
  if (number != child.trunk || number == child.lost_trunk) return;
  child.lost_trunk = number;
  reactor_->timer_cancel(child.trunk_timer);
  child.trunk_timer = reactor_->timer_start(
      this, trunk_patience_ms, bh::callback(&child, [](Child &it) {
        it.trunk_timer = 0;
        const Supervisor &self = *it.supervisor;
        const bool replaced = it.trunk != it.lost_trunk || !self.children_.front()->running();
        const bool ending = it.replaced || it.retired || it.leaving || self.stopping_;
        if (!it.running() || replaced || ending) return;
        self.log(LogLevel::error, it.slice.name, "the link to the endpoint is broken");
        ::kill(it.pid, SIGKILL);
      }));
}

// Restarts a compartment after the endpoint has reported that it violated the protocol or timed
// out. A process that drains while its replacement runs is not affected.
void Supervisor::restart_unhealthy(std::string_view name) {
  for (const auto &child : children_) {
    if (child->slice.router || child->slice.name != name || !child->running()) continue;
    const bool serves = child->ready && !child->leaving && child->replaces == nullptr;
    if (serves && !stopping_) ::kill(child->pid, SIGKILL);
  }
}

void Supervisor::on_frame(Child &child, const link::Frame &frame, std::string_view payload) {
  switch (frame.kind) {
    case control::ready:
      if (child.ready || !parse_ready(payload, &child.enforced)) return;
      child.ready = true;
      child.servers_missing.clear();
      set_deadline(child);
      child.failed_starts = 0;
      for (const std::string &part : child.enforced.missing) {
        log(LogLevel::warn, child.slice.name, "the kernel cannot enforce: " + part);
      }
      child.ever_ready = true;
      child.telemetry = child.enforced.telemetry;
      if (child.replaced) return;  // stopped before it was ready; a new process follows
      child.strict = false;
      on_awaited(child, {});
      if (child.slice.router) send_apply();  // in case it waits for the endpoint
      return check_all_ready();
    case control::failed:
      child.failure = std::string(payload.substr(0, control::max_log_bytes));
      child.hung = frame.code == control::plugin_hung;
      return;
    case control::status: {
      HostStatus fresh;
      if (!child.slice.router || !from_bytes(payload, &fresh)) return;
      status_ = std::move(fresh);
      status_known_ = true;
      if (hooks_.on_status) hooks_.on_status();
      // The endpoint may have sent changed tool definitions before this frame. They must be stored
      // before the waiting callers are notified.
      if (frame.code == control::asked) pins_->when_written([this] { notify_status(); });
      return;
    }
    case control::pong:
      child.unanswered = 0;
      return;
    case control::settings_taken:
      return on_settings_taken(child, frame.value);
    case control::applied:
      if (child.slice.router) on_applied(frame, payload);
      return;
    case control::trunk_lost:
      return on_trunk_lost(child, frame.value);
    case control::unhealthy:
      if (child.slice.router) restart_unhealthy(payload);
      return;
    case control::approvals_answer:
      if (child.slice.router) on_approvals(frame, payload);
      return;
    case control::pins:
      if (child.slice.router) on_pins(payload);
      return;
    case control::servers_missing: {
      std::vector<std::string> parts;
      const bool sound = child.slice.privileges.exec &&
                         payload.size() <= control::max_ready_bytes &&
                         from_bytes(payload, &parts) && parts.size() <= control::max_ready_parts;
      if (sound) child.servers_missing = std::move(parts);
      return;
    }
    case control::kept_list:
      if (child.slice.router) on_list(payload);
      return;
    case control::finished:
      child.finished = child.slice.router;
      return;
    default:
      return;
  }
}

void Supervisor::ended(Child &child) {
  int status = 0;
  if (::waitpid(child.pid, &status, WNOHANG) != child.pid) return;
  if (child.slice.privileges.exec) ServerGroups::remove_leftovers();
  on_log(child, false);  // reads the remaining log lines
  log_dropped_lines(child);
  reactor_->unwatch(std::exchange(child.pid_watch, 0));
  if (child.log_watch != 0) reactor_->unwatch(std::exchange(child.log_watch, 0));
  const bool was_ready = child.ready;
  child.pid = 0;
  child.ready = false;
  reactor_->timer_cancel(std::exchange(child.kill_timer, 0));
  on_settings_taken(child, child.settings_asked);
  if (child.slice.router) {
    notify_status();
    refuse_approvals();
    if (apply_timer_ != 0 && has_next_policy()) {
      // The new processes may not have the states of the former ones.
      reject("the endpoint process exited during the reload");
    } else if (apply_timer_ != 0) {
      commit();
      finish_apply(fail(BH_E_UNAVAILABLE,
                        "the endpoint process exited during the reload and is being restarted with "
                        "the new profile"));
    } else {
      send_apply();
    }
  }
  child.pidfd.reset();
  child.log_socket.reset();
  child.request.reset();
  child.control.reset();
  child.life.reset();
  if (stopping_ || child.finished) {
    if (child.slice.router && !stopping_) stop_all();
    const bool any = std::any_of(children_.begin(), children_.end(),
                                 [](const auto &other) { return other->running(); });
    if (!any) done_ = true;
    if (child.slice.router) stop_others();
    return;
  }
  if (!child.wanted) return;  // the entry remains, without a process
  if (std::exchange(child.replaced, false)) return restart(child);
  std::string reason = child.failure.empty() ? describe_end(status) : child.failure;
  const bool crashed = !was_ready && ended_by_crash(status);
  // A new version that a swap tries, or starts in place of the former one.
  const bool tried = mode_ == ApplyMode::swap && child.awaited && child.strict;
  if (!was_ready && tried && (crashed || child.hung)) report_plugin(child, reason);
  if (child.replaces != nullptr && apply_timer_ == 0) return drop(child, reason);
  // The endpoint's answer decides whether the candidate or its predecessor is restarted.
  if (apply_timer_ != 0 && (child.replaces != nullptr || has_candidate(&child))) {
    return log(LogLevel::error, child.slice.name, "the compartment exited: " + reason);
  }
  // A failure that a process reports while the gateway is starting (such as an invalid setting, or
  // an address in use) usually requires the user to act. The start is therefore not retried, and
  // run() returns the error.
  if (!was_ready && !all_ready_ && !child.failure.empty()) {
    outcome_ = fail(BH_E_UNAVAILABLE, reason);
    return stop_all();
  }
  log(LogLevel::error, child.slice.name,
      was_ready || child.failure.empty() ? "the compartment " + describe_end(status) : reason);
  if (!was_ready && ++child.failed_starts >= max_failed_starts) {
    if (crashed) report_plugin(child, reason);
    give_up(child, reason);
  } else {
    schedule(child);
  }
  if (!was_ready) on_awaited(child, reason);
}

void Supervisor::stop_others() {
  link::Frame frame;
  frame.kind = control::stop;
  for (const auto &child : children_) {
    if (child->running()) child->control->send(frame);
  }
}

void Supervisor::schedule(Child &child) {
  if (stopping_) return;
  ++child.restarts;
  const std::uint64_t lived_ms = (reactor_->now_ns() - child.started_ns) / 1'000'000u;
  child.quick_ends = lived_ms >= steady_ms ? 0 : child.quick_ends + 1;
  const std::uint32_t doublings = std::min<std::uint32_t>(child.quick_ends, 8);
  const std::uint64_t longest = std::min(max_backoff_ms, child.slice.profile.limits.retry_max_ms);
  const std::uint64_t delay =
      child.quick_ends <= 1 ? 0 : jitter(std::min(min_backoff_ms << (doublings - 2), longest));
  child.timer = reactor_->timer_start(this, delay, bh::callback(&child, [](Child &it) {
                                        it.timer = 0;
                                        it.supervisor->restart(it);
                                      }));
}

void Supervisor::restart(Child &child) {
  auto started = start(child);
  if (started) return;
  log(LogLevel::error, child.slice.name, started.error().text);
  schedule(child);
  on_awaited(child, started.error().text);
}

void Supervisor::give_up(Child &child, const std::string &reason) {
  child.given_up = true;
  child.failure = reason;
  const std::string text = "it exited " + std::to_string(max_failed_starts) +
                           " times before it was ready and will not be restarted: " + reason;
  if (child.slice.router) {
    outcome_ = fail(BH_E_UNAVAILABLE, "compartment \"" + child.slice.name + "\": " + text);
    return stop_all();
  }
  log(LogLevel::error, child.slice.name, text);
  if (child.slice.service) {
    if (service_.gone) service_.gone();
  } else if (children_.front()->running()) {
    report_given_up(child);
  }
  check_all_ready();
}

// If the process loads several plugins, it is unknown which one failed.
void Supervisor::report_plugin(const Child &child, const std::string &reason) const {
  const std::vector<SlicePlugin> &plugins = child.slice.plugins;
  if (plugins.size() == 1 && !child.slice.router && hooks_.on_failed_plugin)
    hooks_.on_failed_plugin(plugins.front().use, reason);
}

void Supervisor::report_given_up(const Child &child) {
  link::Frame frame;
  frame.kind = control::gave_up;
  children_.front()->control->send(frame,
                                   to_bytes(control::GaveUp{child.slice.name, child.failure}));
}

// Sends the compartment's telemetry requirements to the endpoint. A new endpoint process does not
// know them until its link to the compartment is open.
void Supervisor::send_telemetry_wants(const Child &child) {
  link::Frame frame;
  frame.kind = control::telemetry_wants;
  frame.code = child.telemetry;
  children_.front()->control->send(frame, child.slice.name);
}

}  // namespace bulkhead::program
