// Collects the host's status: servers, plugins, counters.
#include "bulkhead/cpp/basics.hpp"
#include "embed/host_impl.hpp"
#include "route/approval_desk.hpp"
#include "route/call_ends.hpp"
#include "route/clients.hpp"
#include "route/counters.hpp"
#include "route/pin_watch.hpp"
#include "route/recorder.hpp"
#include "route/upstreams.hpp"
#include "route/views.hpp"

namespace bulkhead {

std::string_view to_string(ServerState state) noexcept {
  switch (state) {
    case ServerState::connecting:
      return "connecting";
    case ServerState::ready:
      return "ready";
    case ServerState::idle:
      return "idle";
    case ServerState::failed:
      return "failed";
    case ServerState::disabled:
      return "disabled";
  }
  return "";
}

namespace {

using Counters = std::vector<std::pair<std::string, std::uint64_t>>;

void append_counters(const std::string &id, const Counters &counters, Counters *out) {
  for (const auto &[name, value] : counters) out->emplace_back(id + "." + name, value);
}

PluginStatus plugin_status(const Part &part, const RemotePlugins &remote) {
  PluginStatus plugin;
  plugin.id = part.use.id;
  plugin.plugin = part.use.plugin;
  plugin.state = part.failure.empty() ? "started" : "failed: " + part.failure;
  if (!part.compartment.empty()) plugin.state = remote.state(part);
  if (part.instance != nullptr) {
    const Library &library = part.instance->library();
    plugin.path = library.path();
    plugin.version = library.manifest().version;
    plugin.provides = library.manifest().provides;
  }
  return plugin;
}

void append_router_counters(const RouterParts &route, Counters *out) {
  const RouterCounters &c = route.calls.counters;
  out->insert(out->end(), {{"calls", c.calls},
                           {"refused_messages", c.refused_messages},
                           {"refused_by_policy", c.refused_by_policy},
                           {"policy_timeouts", c.policy_timeouts},
                           {"approvals_asked", c.approvals_asked},
                           {"approvals_allowed", c.approvals_allowed},
                           {"approvals_denied", c.approvals_denied},
                           {"approvals_expired", c.approvals_expired},
                           {"approvals_waiting", route.calls.desk.size()},
                           {"timeouts", c.timeouts},
                           {"bad_upstream_messages", c.bad_upstream_messages},
                           {"stray_answers", c.stray_answers},
                           {"refused_asks", c.refused_asks},
                           {"dropped_events", c.dropped_events},
                           {"dropped_members", c.dropped_members},
                           {"dropped_records", route.records.recorder.dropped()},
                           {"dropped_details", c.dropped_details},
                           {"refused_unrecorded", c.refused_unrecorded},
                           {"answers_withheld", c.answers_withheld}});
}

}  // namespace

HostStatus HostImpl::status() const {
  HostStatus status;
  if (core_.router == nullptr) return status;
  const RouterParts &route = core_.route();
  status.policy_mark = core_.profile.policy_mark;
  for (const auto &upstream : route.servers.list.all()) {
    ServerStatus &server = status.servers.emplace_back(upstream->status());
    route.policy.pins.add_unapproved(*upstream, &server);
  }
  for (const Parts *parts : {&plugins_.transports(), &plugins_.connectors(), &plugins_.tools(),
                             &plugins_.policies(), &plugins_.telemetry(), &plugins_.services()}) {
    for (const auto &part : *parts) {
      status.plugins.push_back(plugin_status(*part, remote_));
      const auto *stub = part->telemetry_stub.get();
      if (stub != nullptr) append_counters(part->use.id, stub->counters(), &status.counters);
      const auto *instance = part->instance.get();
      if (instance != nullptr)
        append_counters(part->use.id, instance->counters(), &status.counters);
    }
  }
  status.servers_missing = plugins_.servers_missing();
  for (const auto &part : plugins_.transports()) {
    if (part->end == nullptr) continue;
    const auto *transport = part->instance->ext<bh_transport>(BH_EXT_TRANSPORT);
    // The address is empty if it must not be displayed.
    const bh_str endpoint = transport->endpoint(part->instance->self());
    if (endpoint.n > 0) status.endpoints.emplace_back(bh::view(endpoint));
  }
  append_router_counters(route, &status.counters);
  status.collisions = route.clients.views.collisions();
  status.clients = route.clients.sessions.list();
  status.sessions = route.clients.sessions.count();
  status.in_flight = route.calls.ends.in_flight();
  status.calls = route.calls.counters.calls;
  status.settled = settled() && policies_.settled();
  status.drained = drained();
  return status;
}

}  // namespace bulkhead
