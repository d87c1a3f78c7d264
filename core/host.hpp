// The embeddable host. It loads the plugins of a profile and routes MCP messages between them.
//
//   auto host = bulkhead::Host::create(profile, options);
//   (*host)->start();  (*host)->run();
//
// All functions must be called on one thread, except request_stop(). The library never prints,
// never calls exit(), and installs no signal handlers.
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
  // state: "started", "in compartment NAME" or "failed: REASON"
  std::string id, plugin, path, version, state;
  std::vector<std::string> provides;
  std::uint32_t generation = 1;
  bool swapped = false;  // the file is not the profile's; see bulkhead plugin swap
  bool watched = false;  // a change of the profile's file swaps the plugin
};

struct HostStatus {
  std::vector<ServerStatus> servers;
  std::vector<PluginStatus> plugins;
  std::vector<std::string> endpoints;
  std::vector<std::string> collisions;  // names that are not listed, each with a reason
  // Isolation features that are missing from the sandboxes of local servers (see
  // Spawner::missing()).
  std::vector<std::string> servers_missing;
  std::vector<std::pair<std::string, std::uint64_t>> counters;
  std::vector<ClientStatus> clients;
  std::uint64_t sessions = 0, in_flight = 0, calls = 0;
  // The results of Host::settled() and Host::drained(). `settled` also requires that each policy
  // plugin in another process is ready or has failed.
  bool settled = false, drained = false;
  PolicyMark policy_mark;  // identifies the current policies and rules
};

// The result of Host::apply().
struct ApplyReport {
  // Servers and tools plugins, in the order of the profile; `removed` in that of the old profile.
  std::vector<std::string> added, changed, removed;
  // servers with changes that do not require a new connection, see same_wire()
  std::vector<std::string> adjusted;
  std::uint32_t unchanged = 0;      // number of unchanged servers and tools plugins
  std::vector<std::string> policy;  // applied changes of rules and policies
  // applied settings, such as "naming" or "limits.call_timeout_ms"
  std::vector<std::string> settings;
  std::vector<std::string> files;          // "tools.X: file changed; new version runs"
  std::vector<std::string> needs_restart;  // "transports.http: needs a restart"
  PolicyMark policy_mark;                  // identifies the current policies and rules

  // Returns true if no server has changed, even if policies or settings have.
  bool nothing_changed() const noexcept {
    return added.empty() && changed.empty() && removed.empty() && adjusted.empty();
  }
  // Returns true if no server, policy or setting has changed.
  bool nothing_applied() const noexcept {
    return nothing_changed() && policy.empty() && settings.empty();
  }
};

class Host {
 public:
  // Loads the plugins, except services, but does not start them. If a required plugin cannot be
  // loaded, returns an error that names it.
  static Result<std::unique_ptr<Host>> create(Profile profile, HostOptions options);
  virtual ~Host() = default;

  // Starts plugins and transports and, if HostOptions::eager is set, upstreams.
  virtual Result<void> start() = 0;
  // Runs until request_stop() is called, or until all transports have finished and all responses
  // have been sent. Before it returns, it closes sessions and lanes and stops the plugins within
  // the profile's limits.
  virtual void run() = 0;
  // May be called on any thread and in signal handlers.
  virtual void request_stop() noexcept = 0;

  // Hot reload: replaces the current profile with `next`.
  // - Unchanged servers and tools plugins keep their connections. New ones are connected.
  // - Removed and changed servers and tools plugins are unlisted immediately. They are stopped
  //   when their in-flight calls have finished, or after limits.drain_ms. New calls to a changed
  //   server use the new connection.
  // - Clients stay connected and are notified of changed lists.
  // - Naming, expose and most limits are applied. Settings that need a restart keep their
  //   current values and are named in the report.
  //
  // Returns an error, and changes nothing, if the host is not running, if a required new tools
  // plugin cannot be loaded or started, or if a policy rejects its new configuration. Must be
  // called on the reactor thread, for example from a posted function, but never inside a callback
  // of a plugin, of a client or of HostOptions.
  virtual Result<ApplyReport> apply(Profile next) = 0;
  // Like apply(next), but also replaces HostOptions::remote, and thereby changed servers and tools
  // plugins in other processes. Policies and telemetry plugins are not moved between processes.
  virtual Result<ApplyReport> apply(Profile next, std::map<std::string, RemoteUse> remote) = 0;
  // Returns true if everything that apply() removed has stopped, including child processes.
  virtual bool drained() const = 0;
  // Like apply(next, remote), and also replaces the processes of policies. First the state of each
  // policy that offers bh.state/1 is moved; requests to it are queued until then. If the state
  // cannot be moved, nothing has changed. `done` is called once, possibly inside this function,
  // unless the host is destroyed first.
  virtual void apply(Profile next, std::map<std::string, RemoteUse> remote,
                     std::vector<NextPolicy> policies,
                     std::function<void(Result<ApplyReport>)> done) = 0;
  // Connects the host to a compartment's process through the socket `trunk`. Must be called each
  // time the process is started, except for the processes that apply() receives. Until then, the
  // compartment's servers are "connecting".
  virtual void attach(const std::string &compartment, OwnedFd trunk) = 0;
  // Must be called if the compartment's process will not be restarted. Its servers then fail with
  // `reason`.
  virtual void give_up(const std::string &compartment, const std::string &reason) = 0;
  // Sets the BH_TELEMETRY_... needs that the previous process of a telemetry compartment reported.
  // They apply until the current process has reported its own. Must be called on the reactor
  // thread.
  virtual void telemetry_wants(const std::string &compartment, std::uint32_t needs) = 0;

  // Returns the pending approval requests, oldest first. If `watch_ms` is not 0, the caller is an
  // approval interface that polls at least every `watch_ms` (at most 60,000). During that time, new
  // calls that require approval wait for a decision; without an approval interface, they are
  // rejected.
  virtual ApprovalList approvals(std::uint64_t watch_ms) = 0;
  // Approves or denies a pending approval request, or revokes a grant. Returns BH_E_NOT_FOUND if
  // there is no such request or grant, and BH_E_INVALID if the scope is invalid or not possible for
  // this call. This function and approvals() must be called on the reactor thread, but not inside a
  // plugin or client callback.
  virtual Result<void> answer_approval(const ApprovalAnswer &answer) = 0;

  virtual HostStatus status() const = 0;
  virtual Reactor &reactor() noexcept = 0;
  // Returns true if every server to which the host has begun to connect has listed its tools or has
  // failed. A lazy server that need not be started counts as well.
  virtual bool settled() const = 0;

  // Connects a client that runs inside the embedding program. `on_message` runs inside the router,
  // so it must not send messages, and must not connect clients or destroy other clients. It may
  // destroy its own client.
  virtual std::unique_ptr<LocalClient> connect(
      std::function<void(std::string_view message)> on_message) = 0;
  // Runs the event loop until `done` returns true or timeout_ms has passed. Returns the result of
  // `done`. For programs that have no event loop.
  virtual bool run_until(const std::function<bool()> &done, std::uint64_t timeout_ms) = 0;
};

}  // namespace bulkhead
