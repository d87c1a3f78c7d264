// Loads and starts the plugins of the host, and stops the plugins that a reload removes.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "embed/host_core.hpp"
#include "embed/part.hpp"

namespace bulkhead {

class HostPlugins {
 public:
  HostPlugins(HostCore &core, HostParts &host) : core_(core), host_(host) {}

  // Loads all plugins of the profile except connectors and services, which are loaded on first use.
  // `make_stub` creates the client stub of a plugin that runs in a compartment, or returns false if
  // the plugin runs in this process.
  using MakeStub = std::function<bool(std::string_view group, Part &part)>;
  Result<void> load(PluginRuntimeOptions options, MakeStub make_stub);
  // Starts all loaded plugins. Returns an error if a required plugin cannot start.
  Result<void> start_all();
  // Stop the plugins. stop_users() must be called first. stop_recorders() stops the telemetry
  // plugins, policies and services, because stopping the other plugins still produces records.
  void stop_users();
  void stop_recorders();
  void clear();

  Result<std::unique_ptr<Part>> make(std::string_view group, const PluginUse &use);
  Result<void> start(Part &part);
  // Returns the connector for servers of this type. Loads it on first use.
  Result<Part *> connector_for(const std::string &type);
  // Returns the service that implements bh.host.http/1, or null. Sets *self to the pointer that the
  // service's functions expect.
  const bh_http_service *http_service(void **self);

  // Updates the fingerprints that plugins in this process use to mask the secrets in the current
  // profile.
  void use_prints();
  bool has_children() const { return runtime_->has_children(); }
  void protect_files() { runtime_->protect_files(); }
  std::shared_ptr<const SecretPrints> prints() const { return runtime_->prints(); }
  std::vector<std::string> servers_missing() const {
    return runtime_ ? runtime_->servers_missing() : std::vector<std::string>();
  }

  // Replaces the tools plugins with `next`. A removed plugin is stopped after its last call has
  // finished.
  void exchange_tools(Parts next);
  void end_left();

  const Parts &transports() const noexcept { return transports_; }
  const Parts &connectors() const noexcept { return connectors_; }
  const Parts &tools() const noexcept { return tools_; }
  const Parts &policies() const noexcept { return policies_; }
  const Parts &telemetry() const noexcept { return telemetry_; }
  const Parts &services() const noexcept { return services_; }
  // Removes a tools plugin and returns it, so that it can be passed to exchange_tools().
  std::unique_ptr<Part> take_tools(const Part *part);

 private:
  std::unique_ptr<Part> new_part(const PluginUse &use);
  Result<std::unique_ptr<Part>> load_part(std::unique_ptr<Part> part);
  Result<void> add(std::string_view group, const std::vector<PluginUse> &uses, Parts *parts);
  void report_skipped(const Part &part) const;
  bool connects_children(const std::string &plugin) const;
  void load_services();
  void forget_ended();

  HostCore &core_;
  HostParts &host_;
  std::string prints_key_;
  MakeStub make_stub_;
  std::unique_ptr<PluginRuntime> runtime_;  // must outlive the parts
  Parts transports_, connectors_, tools_, policies_, telemetry_, services_;
  Parts leaving_;            // removed by a reload; they may have in-flight calls
  std::deque<Parts> ended_;  // stopped plugins whose posted functions have not yet run
  bool services_loaded_ = false;
};

}  // namespace bulkhead
