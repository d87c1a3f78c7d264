// The embeddable host: loads a profile's plugins and routes MCP between them.
//
//   auto host = bulkhead::Host::create(profile, options);
//   (*host)->start();  (*host)->run();
//
// Thread: everything on one thread, except request_stop(). The library never prints, never calls
// exit(), installs no signal handler.
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
  std::vector<std::string> collisions;  // names that could not be offered, with the reason
  // Parts of the sandboxes of servers started here that could not be had, see Spawner::missing().
  std::vector<std::string> servers_missing;
  std::vector<std::pair<std::string, std::uint64_t>> counters;
  std::vector<ClientStatus> clients;
  std::uint64_t sessions = 0, in_flight = 0, calls = 0;
  // See Host. settled: each policy in another process can decide, or has failed, too.
  bool settled = false, drained = false;
  PolicyMark policy_mark;  // of the policies and rules that are in force
};

// What Host::apply() did.
struct ApplyReport {
  std::vector<std::string> added, changed, removed;  // servers, by name, in order
  std::vector<std::string>
      adjusted;                 // servers whose tool lists or bounds changed, not connected anew
  std::uint32_t unchanged = 0;  // servers
  std::vector<std::string> policy;    // what changed of rules and policies that is in force now
  std::vector<std::string> settings;  // "naming", "limits.call_timeout_ms": in force now
  std::vector<std::string> files;     // "tools.X: file changed; new version runs"
  std::vector<std::string> needs_restart;  // "transports.http: needs a restart"
  PolicyMark policy_mark;                  // of what is in force now

  // Of servers; policies and settings are beside them.
  bool nothing_changed() const noexcept {
    return added.empty() && changed.empty() && removed.empty() && adjusted.empty();
  }
  // Of servers, policies and settings.
  bool nothing_applied() const noexcept {
    return nothing_changed() && policy.empty() && settings.empty();
  }
};

class Host {
 public:
  // Loads the plugins; nothing is started. On failure the error names the plugin.
  static Result<std::unique_ptr<Host>> create(Profile profile, HostOptions options);
  virtual ~Host() = default;

  // Starts plugins, transports and (eager) upstreams.
  virtual Result<void> start() = 0;
  // Runs until request_stop(), or until every transport has finished and answers are out; then
  // ends sessions, lanes and plugins within the profile's bounds.
  virtual void run() = 0;
  // From any thread or a signal handler (async-signal-safe).
  virtual void request_stop() noexcept = 0;

  // While it runs: makes `next` the profile. Servers (and tools plugins) that are as before keep
  // their connections; new ones are connected, removed and changed ones leave the lists at once and
  // end when their calls in flight have, at most limits.drain_ms later. The calls of a changed
  // server go to its new connection. Clients stay connected and are told of changed lists. Naming,
  // expose and most limits change; what cannot is named in the report and stays.
  // An error (a new tools plugin that is required and does not load): nothing was changed.
  // Thread: the loop's, from on_status or a function posted to the reactor, never from inside a
  // plugin's or client's callback.
  virtual Result<ApplyReport> apply(Profile next) = 0;
  // The same, with other servers and tools plugins in other processes. Policies and telemetry
  // plugins stay where they are.
  virtual Result<ApplyReport> apply(Profile next, std::map<std::string, RemoteUse> remote) = 0;
  // True once what apply() has taken out is gone, its children included.
  virtual bool drained() const = 0;
  // The process of this compartment is there (again): `trunk` is the socket to it. Until then, and
  // between its lives, its servers are connecting.
  virtual void attach(const std::string &compartment, OwnedFd trunk) = 0;
  // It will not come (again); its servers fail with this reason.
  virtual void give_up(const std::string &compartment, const std::string &reason) = 0;
  // What the telemetry plugin of that compartment has wanted (BH_TELEMETRY_...), said by an earlier
  // process of it to an earlier one of this. Until it says something itself, that holds. [io]
  virtual void telemetry_wants(const std::string &compartment, std::uint32_t needs) = 0;

  // Calls that wait for a person, oldest first. watch_ms: the caller is a surface that will look
  // again within so long (at most 60,000): until then calls wait for it instead of being refused;
  // 0: it was just a look.
  virtual ApprovalList approvals(std::uint64_t watch_ms) = 0;
  // BH_E_NOT_FOUND: that question does not wait (any more). BH_E_INVALID: there is no such scope.
  // Both on the loop's thread, never from inside a plugin's or client's callback.
  virtual Result<void> answer_approval(const ApprovalAnswer &answer) = 0;

  virtual HostStatus status() const = 0;
  virtual Reactor &reactor() noexcept = 0;
  // True once each enabled server has answered or failed.
  virtual bool settled() const = 0;

  // on_message is called from inside the router: it takes a note and returns. It must not send,
  // connect, or destroy a client.
  virtual std::unique_ptr<LocalClient> connect(
      std::function<void(std::string_view message)> on_message) = 0;
  // Turns the loop until the predicate holds or timeout_ms is over; for programs without own loop.
  virtual bool run_until(const std::function<bool()> &done, std::uint64_t timeout_ms) = 0;
};

}  // namespace bulkhead
