// The embeddable host: loads a profile's plugins and routes MCP messages between them.
//
//   auto host = bulkhead::Host::create(profile, options);
//   (*host)->start();  (*host)->run();
//
// All functions run on one thread, except request_stop(). The library never prints, never calls
// exit(), and installs no signal handlers.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/owned_fd.hpp"
#include "base/result.hpp"
#include "host_options.hpp"
#include "local_client.hpp"
#include "profile/profile.hpp"
#include "route/approval.hpp"
#include "route/client_status.hpp"
#include "route/server_status.hpp"

namespace bulkhead {

class Reactor;

struct PluginStatus {
  std::string id, plugin, path, version, state;  // state: "started", "failed: ..."
  std::vector<std::string> provides;
  std::uint32_t generation = 1;
};

struct HostStatus {
  std::vector<ServerStatus> servers;
  std::vector<PluginStatus> plugins;
  std::vector<std::string> endpoints;
  std::vector<std::string> collisions;  // names that are not offered, each with a reason
  // Parts that the sandboxes of servers started here are missing; see Spawner::missing().
  std::vector<std::string> servers_missing;
  std::vector<std::pair<std::string, std::uint64_t>> counters;
  std::vector<ClientStatus> clients;
  std::uint64_t sessions = 0, in_flight = 0, calls = 0;
  // See Host. `settled` also requires that each policy in another process is able to decide or has
  // failed.
  bool settled = false, drained = false;
  PolicyMark policy_mark;  // of the current policies and rules
};

// The result of Host::apply().
struct ApplyReport {
  std::vector<std::string> added, changed, removed;  // server names, in order
  std::vector<std::string> adjusted;       // tool lists or limits have changed; not reconnected
  std::uint32_t unchanged = 0;             // servers
  std::vector<std::string> policy;         // applied changes of rules and policies
  std::vector<std::string> settings;       // "naming", "limits.call_timeout_ms": applied
  std::vector<std::string> files;          // "tools.X: file changed; new version runs"
  std::vector<std::string> needs_restart;  // "transports.http: needs a restart"
  PolicyMark policy_mark;                  // of the current policies and rules

  // Returns true if no server has changed, regardless of policies and settings.
  bool nothing_changed() const noexcept {
    return added.empty() && changed.empty() && removed.empty() && adjusted.empty();
  }
  // Returns true if no server, policy or setting changed.
  bool nothing_applied() const noexcept {
    return nothing_changed() && policy.empty() && settings.empty();
  }
};

class Host {
 public:
  // Loads the plugins without starting them. On failure, the error names the plugin.
  static Result<std::unique_ptr<Host>> create(Profile profile, HostOptions options);
  virtual ~Host() = default;

  // Starts plugins, transports and (if HostOptions::eager is set) upstreams.
  virtual Result<void> start() = 0;
  // Runs until request_stop() is called, or until all transports have finished and all answers have
  // been sent. Then ends sessions, lanes and plugins within the profile's limits.
  virtual void run() = 0;
  // May be called on any thread or in a signal handler (async-signal-safe).
  virtual void request_stop() noexcept = 0;

  // Hot reload: makes `next` the current profile.
  // - Unchanged servers and tools plugins keep their connections; new ones are connected.
  // - Removed and changed ones leave the lists immediately. They end after their in-flight calls,
  //   but no later than after limits.drain_ms. New calls to a changed server use its new
  //   connection.
  // - Clients stay connected and are notified of changed lists.
  // - Naming, expose and most limits are applied. Other settings are kept and named in the report.
  // Changes nothing if an error is returned (a new required tools plugin cannot be loaded).
  // Called on the reactor thread, from on_status or a posted function, but never inside a plugin or
  // client callback.
  virtual Result<ApplyReport> apply(Profile next) = 0;
  // Also replaces changed servers and tools plugins in other processes. Does not move policies and
  // telemetry plugins.
  virtual Result<ApplyReport> apply(Profile next, std::map<std::string, RemoteUse> remote) = 0;
  // Returns true once all parts that apply() removed have ended, including their child processes.
  virtual bool drained() const = 0;
  // Connects a compartment's process through the socket `trunk`. Called after the process has been
  // started or restarted. Until then, its servers are in the "connecting" state.
  virtual void attach(const std::string &compartment, OwnedFd trunk) = 0;
  // Called if the process will not be restarted. Its servers fail with this reason.
  virtual void give_up(const std::string &compartment, const std::string &reason) = 0;
  // Sets the needs (BH_TELEMETRY_...) that a previous process of the compartment's telemetry plugin
  // reported. They apply until the current process reports its needs. Called on the reactor thread.
  virtual void telemetry_wants(const std::string &compartment, std::uint32_t needs) = 0;

  // Returns the calls pending approval, oldest first. If `watch_ms` is not 0, the caller is an
  // approval surface that calls again within this time (at most 60,000 ms). Until then, new calls
  // that require approval wait instead of being refused.
  virtual ApprovalList approvals(std::uint64_t watch_ms) = 0;
  // Returns BH_E_NOT_FOUND if the approval is not pending, or BH_E_INVALID if the scope is unknown.
  // Both approval functions must be called on the reactor thread, but not inside a plugin or client
  // callback.
  virtual Result<void> answer_approval(const ApprovalAnswer &answer) = 0;

  virtual HostStatus status() const = 0;
  virtual Reactor &reactor() noexcept = 0;
  // Returns true once each enabled server has answered or failed.
  virtual bool settled() const = 0;

  // Creates a client inside the program. on_message is called inside the router, so it must only
  // store the message. It must not send messages, or connect or destroy clients.
  virtual std::unique_ptr<LocalClient> connect(
      std::function<void(std::string_view message)> on_message) = 0;
  // Runs the loop until the predicate is true or timeout_ms has passed, for programs without their
  // own event loop.
  virtual bool run_until(const std::function<bool()> &done, std::uint64_t timeout_ms) = 0;
};

}  // namespace bulkhead
