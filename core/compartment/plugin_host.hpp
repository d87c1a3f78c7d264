// Hosts the plugins of a compartment that has no router. These are either connectors and tools
// plugins behind a ServerStub, or a single policy or telemetry plugin behind the stub for its type.
// Both kinds of compartments may also have services, which the other plugins use.
//
// Owned by the compartment. All functions must be called on the reactor thread.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "compartment/control.hpp"
#include "compartment/slice.hpp"
#include "host_tables/extensions.hpp"
#include "host_tables/table_set.hpp"
#include "link/policy_server_stub.hpp"
#include "link/server_stub.hpp"
#include "link/telemetry_server_stub.hpp"
#include "plugin_base/plugin_runtime.hpp"

namespace bulkhead {

class PluginHost {
 public:
  // The caller sets these members of `options`: log, log_level, services, checked_plugins and
  // groups. PluginHost sets find_table, spawns, adopt_orphans and on_servers_missing.
  PluginHost(Slice slice, Reactor &reactor, PluginRuntimeOptions options);
  ~PluginHost();
  PluginHost(const PluginHost &) = delete;
  PluginHost &operator=(const PluginHost &) = delete;

  // Loads and starts the plugins, except services, which are loaded when they are first used.
  // Returns an error if a required plugin that is not a connector cannot be started.
  Result<void> start();
  // Returns the isolation features that were missing from at least one server's sandbox (see
  // Spawner::missing()). on_servers_missing is called when the list grows.
  std::vector<std::string> servers_missing() const;
  std::function<void()> on_servers_missing;
  // See ServerStub::attach().
  void attach(OwnedFd trunk, std::function<void()> on_lost);
  // Applies to lanes that are opened and servers that are started after this call.
  void apply_settings(ServerSettings settings);
  // Waits for in-flight calls, closes the lanes, and then stops the plugins. Runs the event loop
  // while it waits for calls and lanes, but not longer than the profile's time limits.
  // `replaced`: another process receives the requests of the policy. Then also waits until the
  // policy's pending decisions are complete.
  void stop(bool replaced = false);

  // Returns the BH_TELEMETRY_... needs of the telemetry plugin, or 0 if there is none or it has
  // failed.
  std::uint32_t telemetry_needs() const;
  std::vector<control::ReadyPlugin> running() const;

 private:
  struct Part : PluginPart {
    PluginHost *host = nullptr;
    std::uint32_t number = 0;
  };
  // Receives the plugins' calls. There is no transport table because clients do not connect to this
  // process.
  struct Receiver;
  using Tables = host_tables::TableSet<
      host_tables::ConnectorTable<Receiver>, host_tables::ToolsTable<Receiver>,
      host_tables::PolicyTable<Receiver>, host_tables::EventTable<Receiver>,
      host_tables::TelemetryTable<Receiver>, host_tables::HttpTable<Receiver>>;

  PluginRuntimeOptions complete(PluginRuntimeOptions options);
  void make_parts();
  Result<void> bring_up(Part &part);
  Result<void> note_failure(Part &part, const Error &error, const std::string &text);
  const char *find_tables(std::uint32_t number);
  const bh_http_service *http_service(void **self);
  void wait_for(std::uint64_t timeout_ms, const std::function<bool()> &done);
  void log(std::int32_t level, const std::string &component, const std::string &text) const;

  Slice slice_;
  Reactor &reactor_;
  const std::thread::id thread_ = std::this_thread::get_id();
  const bh_limits limits_;
  const Tables tables_;
  const decltype(PluginRuntimeOptions::log) log_;
  PluginRuntime runtime_;
  std::vector<std::unique_ptr<Part>> parts_;  // indexed by the plugin's number in the slice
  std::vector<link::ServedPlugin> plugins_;
  std::unique_ptr<link::ServerStub> stub_;
  std::unique_ptr<link::PolicyServerStub> policy_stub_;
  std::unique_ptr<link::TelemetryServerStub> telemetry_stub_;
  bool services_loaded_ = false;  // services are loaded when they are first used
  bool stopped_ = false;          // stop() was called
  bool released_ = false;         // no plugin runs any longer
};

}  // namespace bulkhead
