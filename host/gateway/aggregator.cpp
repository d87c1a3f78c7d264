// Implements `bulkhead aggregator`. The parent program provides the servers and calls their tools.
#include <unistd.h>

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "command_line/commands.hpp"
#include "common/instance_lock.hpp"
#include "common/logger.hpp"
#include "common/parent_watch.hpp"
#include "common/paths.hpp"
#include "common/signals.hpp"
#include "gateway/run_host.hpp"
#include "plugin/loader.hpp"
#include "plugin_base/load_options.hpp"
#include "reactor/reactor.hpp"
#include "sandbox/confine.hpp"
#include "sources/profile_source.hpp"
#include "swap/plugin_store.hpp"

namespace bulkhead::program {
namespace {

// The instance lock, and a descriptor that becomes readable when the parent exits. Both are held
// until the program exits.
struct Guards {
  OwnedFd lock, parent;
};

// Returns nullopt if another aggregator holds the lock or the parent has exited; the program then
// exits successfully. It must not read standard input before this check, because the input may be
// intended for the other aggregator.
Result<std::optional<Guards>> acquire_guards(const Arguments &arguments) {
  Guards guards;
  // If the parent is process 1, its exit terminates all processes anyway. --parent-pid 0 disables
  // the watch.
  const pid_t parent = arguments.parent_pid < 0 ? ::getppid() : arguments.parent_pid;
  if (parent > 1 || arguments.parent_pid > 0) {
    auto watched = watch_parent(parent);
    if (!watched) return std::unexpected(watched.error());
    if (!*watched) return std::nullopt;
    guards.parent = std::move(*watched);
  }
  if (!arguments.lock_path.empty()) {
    auto lock = acquire_instance_lock(arguments.lock_path);
    if (!lock) return std::unexpected(lock.error());
    if (!*lock) return std::nullopt;
    guards.lock = std::move(*lock);
  }
  return guards;
}

// This process both connects to servers and starts servers, so it needs the privileges of the
// "aggregator" compartment and of the "launcher" compartment. Each server that it starts has its
// own sandbox.
Result<Enforced> confine_to_servers(const Profile &profile) {
  Confinement confinement;
  confinement.role = "aggregator";
  confinement.network = confinement.unix_sockets = true;
  confinement.exec = confinement.namespaces = true;
  confinement.hide = control_dirs();
  confinement.hide.push_back(profile.state_dir + "/secrets");
  confinement.hide.push_back(profile.state_dir + std::string(plugin_store_folder));
  confinement.mode = profile.isolation.require ? ConfineMode::require : ConfineMode::best_effort;
  return confine(confinement);
}

// Opens and checks the plugins before this process is confined. Afterwards, if the user is
// unprivileged, the process is in a user namespace in which root's files appear to belong to user
// 65534. If a plugin cannot be opened, the error is reported later, when it is known whether the
// plugin is required.
CheckedLibraries check_plugins(const Profile &profile) {
  CheckedLibraries checked;
  const auto check = [&](const std::string &plugin, const std::string &sha256) {
    if (checked.contains(plugin)) return;
    LoadOptions options = load_options(profile);
    options.sha256 = sha256;
    checked.emplace(plugin, Library::check(plugin, options));
  };
  for (const auto *uses : {&profile.transports, &profile.tools, &profile.policies,
                           &profile.telemetry, &profile.services}) {
    for (const PluginUse &use : *uses) check(use.plugin, use.sha256);
  }
  for (const auto &[type, plugin] : profile.connectors) check(plugin, {});
  return checked;
}

class Aggregator {
 public:
  Aggregator(const Arguments &arguments, Guards guards)
      : guards_(std::move(guards)),
        logger_(LogLevel::error,
                arguments.verbose ? level_named(arguments.log_level) : LogLevel::warn) {}

  int run(Profile profile) {
    raise_file_limit();
    HostOptions options;
    options.adopt_orphans = true;
    options.checked_plugins = check_plugins(profile);
    const auto enforced = confine_to_servers(profile);
    if (!enforced) return complain(enforced.error().text);
    for (const std::string &part : enforced->missing) {
      logger_.log(LogLevel::warn, "aggregator", "confinement is incomplete: " + part);
    }
    for (const auto &note : profile.notes) logger_.log(LogLevel::warn, "profile", note);
    options.log = [this](LogLevel level, std::string_view component, std::string_view text) {
      logger_.log(level, component, text);
    };
    options.log_level = logger_.level();
    auto host = Host::create(std::move(profile), std::move(options));
    if (!host) return complain(host.error().text);
    host_ = std::move(*host);
    set_signalled_host(host_.get());
    const int code = start_and_run();
    set_signalled_host(nullptr);
    host_.reset();
    return code;
  }

 private:
  int start_and_run() {
    Reactor &reactor = host_->reactor();
    std::uint64_t watch = 0;
    if (guards_.parent) {
      const auto gone = bh::fd_callback(host_.get(), [](Host &host) { host.request_stop(); });
      reactor.watch(this, guards_.parent.get(), BH_FD_READ, gone, &watch);
    }
    auto started = host_->start();
    if (started) host_->run();
    reactor.forget(this);
    return started ? exit_ok : complain(started.error().text);
  }

  const Guards guards_;
  Logger logger_;
  std::unique_ptr<Host> host_;
};

}  // namespace

int run_aggregator(const Arguments &arguments) {
  auto guards = acquire_guards(arguments);
  if (!guards) return complain(guards.error().text);
  std::optional<Guards> held = std::move(*guards);
  if (!held) return exit_ok;
  auto loaded = load_aggregator(arguments);
  if (!loaded) return report_config_errors(loaded.error());
  return Aggregator(arguments, *std::move(held)).run(std::move(loaded->profile));
}

}  // namespace bulkhead::program
