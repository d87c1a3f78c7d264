#include "embed/remote_plugins.hpp"

#include <utility>

#include "bulkhead/cpp/basics.hpp"
#include "route/tools_edge.hpp"
#include "route/upstream.hpp"
#include "route/wire_edge.hpp"

namespace bulkhead {

RemotePlugins::RemotePlugins(HostCore &core, const Parts &policies, const Parts &telemetry,
                             const Parts &tools)
    : core_(core),
      policies_(policies),
      telemetry_(telemetry),
      tools_(tools),
      uses_(core.options.remote) {}

const RemoteUse *RemotePlugins::find(std::string_view group, const std::string &id) const {
  const auto at = uses_.find(remote_name(group, id));
  return at == uses_.end() ? nullptr : &at->second;
}

bool RemotePlugins::connect_upstream(Upstream &upstream, bool tools) {
  const auto at = uses_.find(upstream.name());
  if (at == uses_.end()) return false;
  link::ClientStub &link = stub(at->second.compartment);
  upstream.self = tools ? link.fresh_tools(at->second.plugin) : link.plugin(at->second.plugin);
  if (tools) {
    upstream.tools = &link::ClientStub::tools();
  } else {
    upstream.connector = &link::ClientStub::connector();
  }
  return true;
}

std::string RemotePlugins::state(const Part &part) const {
  std::string failure;
  if (part.policy_stub != nullptr) {
    failure = part.policy_stub->failure();
  } else if (part.telemetry_stub != nullptr) {
    failure = part.telemetry_stub->failure();
  } else {
    const RemoteUse &use = uses_.at(part.use.id);
    const auto stub = stubs_.find(use.compartment);
    if (stub != stubs_.end()) failure = stub->second->failure(use.plugin);
  }
  return failure.empty() ? "in compartment " + part.compartment : "failed: " + failure;
}

link::ClientStub &RemotePlugins::stub(const std::string &compartment) {
  auto &stub = stubs_[compartment];
  if (stub == nullptr) {
    link::ClientStubEvents &events = *this;
    stub = std::make_unique<link::ClientStub>(*core_.reactor, compartment, core_.limits, events);
  }
  return *stub;
}

link::PolicyClientStub *RemotePlugins::find_policy(const std::string &compartment) const {
  for (const auto &part : policies_) {
    if (part->compartment == compartment) return part->policy_stub.get();
  }
  return nullptr;
}
link::TelemetryClientStub *RemotePlugins::find_telemetry(const std::string &compartment) const {
  for (const auto &part : telemetry_) {
    if (part->compartment == compartment) return part->telemetry_stub.get();
  }
  return nullptr;
}

void RemotePlugins::attach(const std::string &compartment, OwnedFd trunk) {
  if (link::PolicyClientStub *policy = find_policy(compartment)) {
    return policy->attach(std::move(trunk));
  }
  if (link::TelemetryClientStub *telemetry = find_telemetry(compartment)) {
    return telemetry->attach(std::move(trunk));
  }
  stub(compartment).attach(std::move(trunk));
}

void RemotePlugins::give_up(const std::string &compartment, const std::string &reason) {
  if (link::PolicyClientStub *policy = find_policy(compartment)) return policy->give_up(reason);
  if (link::TelemetryClientStub *telemetry = find_telemetry(compartment)) {
    return telemetry->give_up(reason);
  }
  stub(compartment).give_up(reason);
}

void RemotePlugins::expect_telemetry(const std::string &compartment, std::uint32_t needs) {
  if (link::TelemetryClientStub *telemetry = find_telemetry(compartment)) telemetry->expect(needs);
}

void RemotePlugins::lane_message(bh_lane lane, std::uint64_t exchange, std::string_view message) {
  core_.route().servers.wires.message(lane, exchange, message);
}
void RemotePlugins::lane_exchange_failed(bh_lane lane, std::uint64_t exchange,
                                         const LaneFailure &failure) {
  core_.route().servers.wires.exchange_failed(lane, exchange, failure);
}
void RemotePlugins::lane_down(bh_lane lane, const LaneFailure &failure) {
  core_.route().servers.wires.down(lane, failure);
}
void RemotePlugins::lane_closed(bh_lane lane) {
  core_.route().servers.wires.closed(lane);
}
void RemotePlugins::call_complete(bh_call call, std::uint32_t kind, std::string_view json) {
  core_.route().servers.tools.complete(call, kind, json);
}
void RemotePlugins::call_failed(bh_call call, const Error &error) {
  core_.route().servers.tools.refused(call, error);
}
void RemotePlugins::call_progress(bh_call call, double value, double total,
                                  std::string_view message) {
  core_.route().servers.tools.progress(call, value, total, message);
}
void RemotePlugins::call_event(bh_call call, std::uint32_t kind, std::string_view detail) {
  core_.route().servers.tools.event(call, kind, detail);
}
std::vector<Upstream *> RemotePlugins::upstreams_of(const std::string &plugin) const {
  std::vector<Upstream *> found;
  for (const auto &part : tools_) {
    const auto at = uses_.find(part->use.id);
    if (at == uses_.end() || at->second.plugin != plugin || part->upstream == nullptr) continue;
    found.push_back(part->upstream);
  }
  return found;
}
void RemotePlugins::tools_changed(const std::string &plugin, std::uint32_t kind) {
  for (Upstream *upstream : upstreams_of(plugin))
    core_.route().servers.tools.list_changed(*upstream, kind);
}
void RemotePlugins::tools_began(const std::string &plugin) {
  for (Upstream *upstream : upstreams_of(plugin)) core_.route().servers.tools.began(*upstream);
}
void RemotePlugins::resource_updated(const std::string &plugin, std::string_view uri) {
  for (Upstream *upstream : upstreams_of(plugin))
    core_.route().servers.tools.resource_updated(*upstream, uri);
}

}  // namespace bulkhead
