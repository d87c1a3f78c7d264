#include "compartment/compartment.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <map>
#include <memory>
#include <optional>

#include "base/idle_memory.hpp"
#include "compartment/approvals.hpp"
#include "compartment/blocking_frame.hpp"
#include "compartment/control.hpp"
#include "compartment/plugin_host.hpp"
#include "compartment/requests.hpp"
#include "compartment/slice.hpp"
#include "compartment/status_archive.hpp"
#include "embed/policy_watch.hpp"
#include "plugin/secrets.hpp"
#include "plugin_base/load_options.hpp"
#include "route/ledger.hpp"
#include "sandbox/confine.hpp"
#include "sandbox/server_groups.hpp"

namespace bulkhead {
namespace {

constexpr int slice_timeout_ms = 10'000;

// Resource limits that apply in case a compartment runs malicious code. Normal use stays far below
// them.
constexpr std::uint64_t most_memory = 4ULL << 30, most_threads = 512;

// The environment variables to keep. Child programs may need them, and so may libraries that open
// connections.
constexpr const char *kept_variables[] = {
    "HOME",      "LANG",       "LOGNAME",    "PATH",          "SHELL",        "TERM",
    "USER",      "http_proxy", "HTTP_PROXY", "https_proxy",   "HTTPS_PROXY",  "all_proxy",
    "ALL_PROXY", "no_proxy",   "NO_PROXY",   "SSL_CERT_FILE", "SSL_CERT_DIR", "CURL_CA_BUNDLE"};
// Kept only by compartments that start servers. The servers' sandboxes hide the sockets that these
// variables name.
constexpr const char *socket_variables[] = {"SSH_AUTH_SOCK", "XDG_RUNTIME_DIR",
                                            "DBUS_SESSION_BUS_ADDRESS", "DOCKER_HOST",
                                            "CONTAINER_HOST"};

// Sends one log line as a packet. Never blocks: if the socket's buffer is full, the line is
// dropped. Thread-safe.
void send_log(std::int32_t level, std::string_view component, std::string_view text) {
  control::LogLine line{level, std::string(component.substr(0, 256)),
                        std::string(text.substr(0, control::max_log_bytes - 1024))};
  const std::string packet = control::log_mark + to_bytes(line);
  ::send(control::log_fd, packet.data(), packet.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

void send_failure(const Error &error) {
  link::Frame frame;
  frame.kind = control::failed;
  if (error.code == BH_E_TIMEOUT && error.text.find(hang_words) != std::string::npos)
    frame.code = control::plugin_hung;
  send_frame(control::control_fd, frame, error.text);
}

// Makes the kernel kill this process when the supervisor exits. Must be called again after each
// change of the user ID, because such a change clears this setting. Returns false if the supervisor
// has already exited.
bool die_with_parent(pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  return ::getppid() == parent;
}

// Opens the certificate files that environment variables name, and changes each variable to the
// path of the open descriptor. A library can then read the files even if this process switches to a
// user without access to their folders.
std::vector<OwnedFd> open_certificates() {
  std::vector<OwnedFd> opened;
  for (const char *name : {"SSL_CERT_FILE", "SSL_CERT_DIR", "CURL_CA_BUNDLE"}) {
    const char *path = std::getenv(name);
    if (path == nullptr) continue;
    OwnedFd fd(::open(path, O_RDONLY | O_CLOEXEC));
    if (!fd) continue;  // the library reports the error together with the path
    ::setenv(name, ("/proc/self/fd/" + std::to_string(fd.get())).c_str(), 1);
    opened.push_back(std::move(fd));
  }
  return opened;
}

void take_variables_over(const SlicePrivileges &may) {
  std::vector<std::pair<std::string, std::string>> kept;
  const auto keep = [&kept](const char *name) {
    if (const char *value = std::getenv(name)) kept.emplace_back(name, value);
  };
  if (may.network || may.exec)
    std::for_each(std::begin(kept_variables), std::end(kept_variables), keep);
  if (may.exec) std::for_each(std::begin(socket_variables), std::end(socket_variables), keep);
  clear_environment();
  for (const auto &[name, value] : kept) ::setenv(name.c_str(), value.c_str(), 1);
}

Confinement confinement_of(const Slice &slice, const CheckedLibraries &checked,
                           const std::vector<OwnedFd> &certificates) {
  const SlicePrivileges &may = slice.privileges;
  Confinement wish;
  wish.role = slice.name;
  wish.network = may.network;
  wish.connect_ports = may.ports;
  wish.exec = may.exec;
  wish.namespaces = may.exec;
  wish.unix_sockets = may.exec;
  wish.hide = may.hide;
  wish.mode = may.required ? ConfineMode::require : ConfineMode::best_effort;
  if (may.uid != 0) wish.ids = {may.uid, may.gid};
  if (may.exec) return wish;  // child programs have their own file rules and limits
  wish.memory_bytes = most_memory;
  // The kernel does not enforce the thread limit for root.
  if (wish.ids || ::geteuid() != 0) wish.processes = most_threads;
  if (slice.service) return wish;  // loads no libraries, so it needs no file access
  wish.paths = library_paths();
  if (may.network) {
    for (PathRule &rule : network_config_paths()) wish.paths.push_back(std::move(rule));
  }
  for (const auto &[name, library] : checked) {
    // Landlock does not restrict memory files, and accepts no rules for them.
    if (!library || library->sealed) continue;
    wish.paths.push_back({{}, library->fd(), PathRule::Access::read});
  }
  for (const OwnedFd &fd : certificates) {
    wish.paths.push_back({{}, fd.get(), PathRule::Access::read});
  }
  for (const std::string &path : may.read) {
    wish.paths.push_back({path, -1, PathRule::Access::read, may.symlinks});
  }
  for (const std::string &path : may.write) {
    wish.paths.push_back({path, -1, PathRule::Access::read_write, may.symlinks});
  }
  return wish;
}

// Opens the libraries of all plugins that this process loads. Failures are reported later, when the
// plugins are loaded, because their consequences depend on each plugin's `required` setting.
CheckedLibraries open_plugins(const Slice &slice) {
  CheckedLibraries checked;
  const auto open = [&](const PluginUse &use) {
    if (checked.contains(library_of(use))) return;
    checked.emplace(library_of(use),
                    Library::check(library_of(use), load_options(slice.profile, use)));
  };
  for (const SlicePlugin &plugin : slice.plugins) open(plugin.use);
  if (slice.router) {
    const Profile &profile = slice.profile;
    for (const PluginUse &use : profile.transports) open(use);
    for (const PluginUse &use : profile.policies) {
      if (!slice.remote.contains(remote_name("policies", use.id))) open(use);
    }
    for (const PluginUse &use : profile.telemetry) {
      if (!slice.remote.contains(remote_name("telemetry", use.id))) open(use);
    }
  }
  return checked;
}

// If the slice permits it, creates the storage folders of telemetry plugins, and adds them to the
// paths that the compartment may write.
Result<std::map<std::string, std::string>> make_folders(Slice *slice) {
  std::map<std::string, std::string> folders;
  for (const SlicePlugin &plugin : slice->plugins) {
    if (plugin.kind != PluginKind::telemetry || !slice->privileges.stores) continue;
    if (slice->profile.state_dir.empty()) continue;
    auto made = private_folder(slice->profile.state_dir, "plugins", plugin.use.id);
    if (!made) return std::unexpected(made.error());
    slice->privileges.write.push_back(*made);
    folders[plugin.use.id] = std::move(*made);
  }
  return folders;
}

// ---- after confinement -----------------------------------------------------------------------

class Runner final : public link::Channel::Receiver {
 public:
  Runner(control::Ready ready, std::shared_ptr<ServerGroups> groups,
         std::map<std::string, std::string> folders)
      : ready_(std::move(ready)),
        groups_(std::move(groups)),
        services_(services_over(control::request_fd)) {
    services_.folder = [folders = std::move(folders)](const std::string &instance) {
      const auto at = folders.find(instance);
      if (at != folders.end()) return Result<std::string>(at->second);
      return Result<std::string>(fail(BH_E_UNSUPPORTED, "this compartment has no such folder"));
    };
  }

  int run(Slice slice, CheckedLibraries checked, std::shared_ptr<Ledger> ledger) {
    return exit_code(slice.router
                         ? run_router(std::move(slice), std::move(checked), std::move(ledger))
                         : run_plugins(std::move(slice), std::move(checked)));
  }
  int run(const MakeService &make_service, OwnedFd listener) {
    return exit_code(run_service(make_service, std::move(listener)));
  }

 private:
  static int exit_code(const Result<void> &done) {
    if (done) return EXIT_SUCCESS;
    send_failure(done.error());
    return EXIT_FAILURE;
  }
  void listen_to_supervisor(Reactor &reactor) {
    channel_ =
        std::make_unique<link::Channel>(reactor, OwnedFd(control::control_fd), *this,
                                        control::max_answer_bytes, control::max_queue_bytes, true);
    channel_->accept(control::max_frame_bytes);
  }
  void send_control(control::Kind kind, std::string_view payload, std::uint32_t code = 0,
                    std::uint64_t value = 0) {
    link::Frame frame;
    frame.kind = kind;
    frame.code = code;
    frame.value = value;
    channel_->send(frame, payload);
  }
  // Called before any client data is processed. Afterwards, the supervisor rejects the endpoint's
  // requests to listen and to announce addresses.
  void report_ready() {
    send_control(control::ready, to_bytes(ready_));
    channel_->flush();
  }

  Result<void> run_router(Slice slice, CheckedLibraries checked, std::shared_ptr<Ledger> ledger) {
    HostOptions options;
    options.ledger = std::move(ledger);
    options.log = [](LogLevel level, std::string_view component, std::string_view text) {
      send_log(static_cast<std::int32_t>(level), component, text);
    };
    options.log_level = static_cast<LogLevel>(slice.log_level);
    options.eager = slice.eager;
    options.approval_hint = approval_hint;
    options.sealing_key = std::move(slice.sealing_key);
    options.epoch = slice.epoch;
    options.on_status = [this] { send_status(); };
    options.remote = std::move(slice.remote);
    options.checked_plugins = std::move(checked);
    options.services = services_;
    set_policy_hang_handler([](std::string_view policy, std::uint64_t limit_ms) {
      send_log(BH_LOG_ERROR, "watchdog", hang_text(policy, limit_ms));
      ::_exit(exit_policy_hangs);
    });
    options.on_unhealthy = [this](const std::string &name) {
      send_control(control::unhealthy, name);
    };
    options.on_pins = [this](const std::vector<PinNews> &news) { send_pins(news); };
    options.on_list = [this](const ListNews &news) {
      if (channel_ != nullptr) send_control(control::kept_list, to_bytes(news));
    };
    auto host = Host::create(std::move(slice.profile), std::move(options));
    if (!host) return std::unexpected(host.error());
    host_ = std::move(*host);
    if (auto started = host_->start(); !started) return started;
    listen_to_supervisor(host_->reactor());
    report_ready();
    send_status();
    host_->reactor().set_idle_handler(release_idle_memory);
    host_->run();
    send_control(control::finished, {});
    channel_->flush();
    channel_.reset();
    host_.reset();
    return {};
  }

  Result<void> run_plugins(Slice slice, CheckedLibraries checked) {
    auto reactor = Reactor::create();
    if (!reactor) return std::unexpected(reactor.error());
    reactor_ = std::move(*reactor);
    reactor_->set_idle_handler(release_idle_memory);
    PluginRuntimeOptions options;
    options.checked_plugins = std::move(checked);
    options.services = services_;
    options.log = send_log;
    options.log_level = slice.log_level;
    options.groups = std::move(groups_);
    plugins_ = std::make_unique<PluginHost>(std::move(slice), *reactor_, std::move(options));
    if (auto started = plugins_->start(); !started) return started;
    listen_to_supervisor(*reactor_);
    ready_.telemetry = plugins_->telemetry_needs();
    ready_.plugins = plugins_->running();
    // They are only displayed.
    if (to_bytes(ready_).size() > control::max_ready_bytes) ready_.plugins.clear();
    report_ready();
    plugins_->on_servers_missing = [this] {
      if (channel_ != nullptr)
        send_control(control::servers_missing, to_bytes(plugins_->servers_missing()));
    };
    while (!stopping_) reactor_->poll(-1);
    plugins_->stop(replaced_);
    plugins_.reset();
    channel_.reset();
    return {};
  }

  Result<void> run_service(const MakeService &make_service, OwnedFd listener) {
    auto reactor = Reactor::create();
    if (!reactor) return std::unexpected(reactor.error());
    reactor_ = std::move(*reactor);
    reactor_->set_idle_handler(release_idle_memory);
    auto service = make_service(*reactor_, std::move(listener), OwnedFd(control::request_fd),
                                [this] { stopping_ = true; });
    listen_to_supervisor(*reactor_);
    report_ready();
    while (!stopping_) reactor_->poll(-1);
    service.reset();
    channel_.reset();
    return {};
  }

  void send_pins(const std::vector<PinNews> &news) {
    for (std::size_t at = 0; at < news.size() && channel_ != nullptr; at += max_pins_told) {
      const std::size_t end = std::min(news.size(), at + max_pins_told);
      send_control(control::pins,
                   to_bytes(std::vector<PinNews>(news.begin() + static_cast<long>(at),
                                                 news.begin() + static_cast<long>(end))));
    }
  }

  void send_status() {
    if (channel_ != nullptr) send_control(control::status, to_bytes(host_->status()));
  }

  void frame(link::Channel &, const link::Frame &frame, std::string_view payload,
             OwnedFd fd) override {
    switch (frame.kind) {
      case control::trunk:
        if (!fd) return;
        if (host_ != nullptr && frame.code == 1) {
          auto &policies = next_policies_[frame.plugin];
          return policies.push_back({std::string(payload), std::move(fd)});
        }
        if (host_ != nullptr) return host_->attach(std::string(payload), std::move(fd));
        if (plugins_ == nullptr) return;
        return plugins_->attach(std::move(fd), [this, number = frame.value] {
          link::Frame lost;
          lost.kind = control::trunk_lost;
          lost.value = number;
          channel_->send(lost);
        });
      case control::gave_up: {
        control::GaveUp gone;
        if (host_ != nullptr && from_bytes(payload, &gone)) {
          host_->give_up(gone.compartment, gone.reason);
        }
        return;
      }
      case control::telemetry_wants:
        if (host_ != nullptr) host_->telemetry_wants(std::string(payload), frame.code);
        return;
      case control::status_wanted:
        if (host_ != nullptr)
          send_control(control::status, to_bytes(host_->status()), control::asked);
        return;
      case control::ping:
        return send_control(control::pong, {});
      case control::settings: {
        ServerSettings fresh;
        if (plugins_ == nullptr || !from_bytes(payload, &fresh)) return;
        plugins_->apply_settings(std::move(fresh));
        return send_control(control::settings_taken, {}, 0, frame.value);
      }
      case control::apply:
        return apply(payload, frame.value);
      case control::approvals:
        return answer_approvals(frame, payload);
      case control::stop:
        replaced_ = frame.code == 1;
        return stop();
      default:
        return;
    }
  }
  void closed(link::Channel &, std::string_view) override { stop(); }

  void apply(std::string_view payload, std::uint64_t number) {
    Apply wanted;
    auto policies = std::exchange(next_policies_, {});
    if (host_ == nullptr || !from_bytes(payload, &wanted)) return;
    host_->apply(
        std::move(wanted.profile), std::move(wanted.remote),
        std::move(policies[static_cast<std::uint32_t>(number)]),
        [this, number](const Result<ApplyReport> &report) { report_apply(report, number); });
  }

  void report_apply(const Result<ApplyReport> &report, std::uint64_t number) {
    if (report) return send_control(control::applied, to_bytes(*report), 0, number);
    // BH_E_INVALID makes the supervisor restore the previous profile. The error's own status is not
    // sent, because a policy plugin can return any status.
    send_control(control::applied, report.error().text, static_cast<std::uint32_t>(BH_E_INVALID),
                 number);
  }

  void answer_approvals(const link::Frame &asked, std::string_view payload) {
    if (host_ == nullptr) return;
    const auto value = answer_approval_request(*host_, asked.code, payload);
    link::Frame answer;
    answer.kind = control::approvals_answer;
    answer.exchange = asked.exchange;
    if (!value) answer.code = static_cast<std::uint32_t>(value.error().code);
    channel_->send(answer, value ? *value : value.error().text);
  }

  void stop() {
    stopping_ = true;
    if (host_ != nullptr) host_->request_stop();
  }

  control::Ready ready_;
  std::shared_ptr<ServerGroups> groups_;  // null after plugins_ has taken ownership
  HostServices services_;
  std::unique_ptr<Reactor> reactor_;  // for plugins_ or the service; a Host creates its own
  std::unique_ptr<Host> host_;
  std::unique_ptr<PluginHost> plugins_;
  // For the next profiles, by the number of their frame `apply`.
  std::map<std::uint32_t, std::vector<NextPolicy>> next_policies_;
  std::unique_ptr<link::Channel> channel_;
  bool stopping_ = false;
  bool replaced_ = false;  // another process receives this one's requests
};

}  // namespace

int run_compartment(const MakeService &make_service) {
  const pid_t parent = ::getppid();
  ::signal(SIGPIPE, SIG_IGN);
  // Ctrl-C sends SIGINT to the whole process group, but the supervisor decides when a compartment
  // stops.
  ::signal(SIGINT, SIG_IGN);
  ::signal(SIGHUP, SIG_IGN);
  if (!die_with_parent(parent)) return EXIT_FAILURE;
  for (const int fd : {control::control_fd, control::request_fd, control::log_fd}) {
    ::fcntl(fd, F_SETFD, FD_CLOEXEC);
  }
  link::Frame frame;
  std::string bytes;
  OwnedFd passed;  // the control compartment's service socket, or the endpoint's ledger
  Slice slice;
  if (!receive_frame(control::control_fd, slice_timeout_ms, control::max_frame_bytes, &frame,
                     &bytes, &passed) ||
      frame.kind != control::slice || !from_bytes(bytes, &slice)) {
    return EXIT_FAILURE;
  }
  ::explicit_bzero(bytes.data(), bytes.size());
  auto checked = open_plugins(slice);
  auto folders = make_folders(&slice);
  if (!folders) {
    send_failure(folders.error());
    return EXIT_FAILURE;
  }
  // The certificate files are needed only by a compartment that opens connections itself. A
  // compartment that starts programs passes the variables to them unchanged.
  const bool calls_out = slice.privileges.network && !slice.privileges.exec;
  const auto certificates = calls_out ? open_certificates() : std::vector<OwnedFd>();
  std::vector<int> keep{control::control_fd, control::request_fd, control::log_fd};
  for (const auto &[name, library] : checked) {
    if (library) keep.push_back(library->fd());
  }
  for (const OwnedFd &fd : certificates) keep.push_back(fd.get());
  if (slice.service && !passed) return EXIT_FAILURE;
  if (slice.service) keep.push_back(passed.get());
  std::shared_ptr<Ledger> ledger;
  if (slice.router && passed) {
    ledger = Ledger::open(passed.get());
    passed.reset();
  }
  close_other_descriptors(keep);
  take_variables_over(slice.privileges);
  // Control groups must be created before confinement. Afterwards, not even root can create them in
  // folders that other users own.
  auto groups = slice.privileges.exec ? std::make_shared<ServerGroups>() : nullptr;
  auto enforced = confine(confinement_of(slice, checked, certificates));
  if (!enforced) {
    send_failure(enforced.error());
    return EXIT_FAILURE;
  }
  if (!die_with_parent(parent)) return EXIT_FAILURE;
  control::Ready ready;
  ready.in_force = enforced->in_force;
  ready.missing = enforced->missing;
  Runner runner(std::move(ready), std::move(groups), std::move(*folders));
  if (slice.service) return runner.run(make_service, std::move(passed));
  return runner.run(std::move(slice), std::move(checked), std::move(ledger));
}

}  // namespace bulkhead
