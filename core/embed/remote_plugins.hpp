// Manages servers and plugins that run in compartments. Owns the client stubs of connectors and
// tools plugins, and passes the events that these stubs report to the router.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "embed/host_core.hpp"
#include "embed/part.hpp"
#include "link/client_stub.hpp"

namespace bulkhead {

class RemotePlugins final : private link::ClientStubEvents {
 public:
  using Uses = std::map<std::string, RemoteUse>;  // keyed by remote_name()

  RemotePlugins(HostCore &core, const Parts &policies, const Parts &telemetry, const Parts &tools);

  const Uses &uses() const noexcept { return uses_; }
  Uses exchange_uses(Uses next) { return std::exchange(uses_, std::move(next)); }
  // Returns null if the plugin runs in this process.
  const RemoteUse *find(std::string_view group, const std::string &id) const;

  // Connects an upstream to its compartment's client stub. Returns false if the upstream runs in
  // this process.
  bool connect_upstream(Upstream &upstream, bool tools);
  // Connects to a compartment's process after the process has been started or restarted; see
  // Host::attach().
  void attach(const std::string &compartment, OwnedFd trunk);
  void give_up(const std::string &compartment, const std::string &reason);
  void expect_telemetry(const std::string &compartment, std::uint32_t needs);
  // Returns null if no policy runs in this compartment.
  link::PolicyClientStub *find_policy(const std::string &compartment) const;
  // Returns the state of a plugin in a compartment, as text for the status.
  std::string state(const Part &part) const;
  // Must be called after the router has been destroyed.
  void clear() { stubs_.clear(); }

 private:
  link::ClientStub &stub(const std::string &compartment);
  link::TelemetryClientStub *find_telemetry(const std::string &compartment) const;
  std::vector<Upstream *> upstreams_of(const std::string &plugin) const;

  void lane_message(bh_lane lane, std::uint64_t exchange, std::string_view message) override;
  void lane_exchange_failed(bh_lane lane, std::uint64_t exchange,
                            const LaneFailure &failure) override;
  void lane_down(bh_lane lane, const LaneFailure &failure) override;
  void lane_closed(bh_lane lane) override;
  void call_complete(bh_call call, std::uint32_t kind, std::string_view json) override;
  void call_failed(bh_call call, const Error &error) override;
  void call_progress(bh_call call, double value, double total, std::string_view message) override;
  void call_event(bh_call call, std::uint32_t kind, std::string_view detail) override;
  void tools_changed(const std::string &plugin, std::uint32_t kind) override;
  void tools_began(const std::string &plugin) override;
  void resource_updated(const std::string &plugin, std::string_view uri) override;

  HostCore &core_;
  const Parts &policies_, &telemetry_, &tools_;
  Uses uses_;
  std::map<std::string, std::unique_ptr<link::ClientStub>> stubs_;  // keyed by compartment
};

}  // namespace bulkhead
