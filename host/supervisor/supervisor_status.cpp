// Handles status reports and log lines from compartments.
#include <sys/socket.h>

#include <algorithm>
#include <utility>

#include "supervisor/compartment_process.hpp"
#include "supervisor/supervisor_child.hpp"

namespace bulkhead::program {
namespace {

constexpr int max_log_lines_per_turn = 64;
// Rate limits for the log of each compartment. They prevent the log lines of one compartment from
// displacing those of others.
constexpr std::uint64_t log_burst_bytes = 256u << 10, log_bytes_per_second = 32u << 10;

}  // namespace

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
  if (!children_.front()->ready) return notify_status();
  if (status_timer_ != 0) return;  // the pending report serves all callers
  link::Frame frame;
  frame.kind = control::status_wanted;
  children_.front()->control->send(frame);
  status_timer_ =
      reactor_->timer_start(this, max_status_ms, bh::callback<&Supervisor::notify_status>(this));
}

void Supervisor::notify_status() {
  reactor_->timer_cancel(std::exchange(status_timer_, 0));
  for (const auto &done : std::exchange(status_asked_, {})) done();
}

namespace {

std::vector<std::string> plugins_of(const Slice &slice) {
  std::vector<std::string> out;
  for (const SlicePlugin &plugin : slice.plugins) out.push_back(plugin.use.plugin);
  if (!slice.router) return out;
  const auto add = [&](std::string_view group, const std::vector<PluginUse> &uses) {
    for (const PluginUse &use : uses) {
      if (!slice.remote.contains(remote_name(group, use.id))) out.push_back(use.plugin);
    }
  };
  for (const PluginUse &use : slice.profile.transports) out.push_back(use.plugin);
  add("policies", slice.profile.policies);
  add("telemetry", slice.profile.telemetry);
  return out;
}

}  // namespace

// If a compartment has two processes, the draining process is listed last.
std::vector<CompartmentStatus> Supervisor::compartments() const {
  std::vector<CompartmentStatus> out;
  for (const bool leaving : {false, true}) {
    for (const auto &child : children_) {
      if (child->leaving != leaving || (!child->wanted && !child->running())) continue;
      out.push_back(status_of(*child));
    }
  }
  return out;
}

HostStatus Supervisor::complete_status() const {
  HostStatus out = status_;
  for (PluginStatus &one : out.plugins) {
    for (const auto &child : children_) {
      const std::vector<SlicePlugin> &plugins = child->slice.plugins;
      const auto &files = child->enforced.plugins;
      if (child->leaving || child->replaces != nullptr || !child->ready) continue;
      for (std::size_t i = 0; i < plugins.size() && i < files.size(); ++i) {
        if (plugins[i].use.id != one.id || plugins[i].use.plugin != one.plugin) continue;
        one.path = files[i].path;
        one.version = files[i].version;
        one.swapped = !plugins[i].use.file.path.empty();
        one.watched = plugins[i].use.watch;
      }
    }
  }
  return out;
}

CompartmentStatus Supervisor::status_of(const Child &child) {
  CompartmentStatus one;
  one.name = child.slice.name;
  one.pid = child.pid;
  one.restarts = child.restarts;
  one.plugins = plugins_of(child.slice);
  one.in_force = child.enforced.in_force;
  one.missing = child.enforced.missing;
  one.servers_missing = child.servers_missing;
  if (child.given_up) {
    one.state = "failed: " + child.failure;
  } else if (!child.running()) {
    one.state = "waiting";
  } else {
    one.state = child.ending ? "draining" : child.ready ? "running" : "starting";
    one.memory_bytes = resident_bytes(child.pid);
    one.descriptors = count_descriptors(child.pid);
  }
  return one;
}

// Returns false, and counts the line as dropped, if the compartment exceeds its log rate limit.
bool Supervisor::may_log(Child &child, std::size_t bytes) {
  const std::uint64_t passed_ms = (reactor_->now_ns() - child.log_since_ns) / 1'000'000u;
  child.log_since_ns += passed_ms * 1'000'000u;
  const std::uint64_t more = std::min(passed_ms, log_burst_bytes) * log_bytes_per_second / 1'000;
  child.log_bytes -= std::min(child.log_bytes, more);
  if (child.log_bytes + bytes > log_burst_bytes) {
    ++child.dropped_lines;
    return false;
  }
  child.log_bytes += bytes;
  log_dropped_lines(child);
  return true;
}

void Supervisor::log_dropped_lines(Child &child) {
  const std::uint64_t count = std::exchange(child.dropped_lines, 0);
  if (count == 0) return;
  log(LogLevel::warn, child.slice.name,
      std::to_string(count) + " log lines were dropped (rate limit)");
}

// Returns the component name for a log line. A compartment may use the names of its plugins, and
// the endpoint also those of core components. Any other name is prefixed with the compartment's
// name.
std::string Supervisor::log_component(const Child &child, const std::string &component) const {
  const auto has_plugin = [&](const Slice &slice) {
    return std::any_of(slice.plugins.begin(), slice.plugins.end(),
                       [&](const SlicePlugin &plugin) { return plugin.use.id == component; });
  };
  const bool others = component == "supervisor" || component == "service" ||
                      std::any_of(children_.begin(), children_.end(), [&](const auto &other) {
                        return other.get() != &child &&
                               (other->slice.name == component || has_plugin(other->slice));
                      });
  const bool own = child.slice.router ? !others : has_plugin(child.slice);
  return own ? component : child.slice.name + "/" + component;
}

// `over` is true if the other end of the socket was closed. Before that, a return value of 0 from
// recv() means an empty packet, which is ignored.
void Supervisor::on_log(Child &child, bool over) {
  char packet[control::max_log_bytes + 512];
  for (int i = 0; i < max_log_lines_per_turn; ++i) {
    const ssize_t got = ::recv(child.log_socket.get(), packet, sizeof packet, 0);
    if (got < 0) return;
    if (got == 0 && over) {
      reactor_->unwatch(std::exchange(child.log_watch, 0));
      return;
    }
    if (got == 0) continue;
    if (!may_log(child, static_cast<std::size_t>(got))) continue;
    const std::string_view text(packet, static_cast<std::size_t>(got));
    control::LogLine line;
    if (text.front() != control::log_mark) {
      log(LogLevel::warn, child.slice.name, text);
    } else if (from_bytes(text.substr(1), &line)) {
      const auto level = std::clamp(line.level, 0, static_cast<std::int32_t>(LogLevel::error));
      log(static_cast<LogLevel>(level), log_component(child, line.component), line.text);
    }
  }
}

}  // namespace bulkhead::program
