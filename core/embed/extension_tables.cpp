#include "embed/extension_tables.hpp"

#include "bulkhead/cpp/basics.hpp"
#include "embed/host_parts.hpp"
#include "embed/host_plugins.hpp"
#include "embed/policies.hpp"
#include "embed/seal.hpp"
#include "route/clients.hpp"
#include "route/recorder.hpp"
#include "route/reload.hpp"
#include "route/tools_edge.hpp"
#include "route/wire_edge.hpp"

namespace bulkhead {

Part &part_of(void *ctx) noexcept {
  return static_cast<Part &>(*static_cast<PluginPart *>(Instance::of(ctx).user));
}

// Forwards plugin calls to the router.
struct HostTables::Receiver {
  Part &part;
  const HostParts &host;

  static Receiver of(void *ctx) noexcept {
    Part &part = part_of(ctx);
    return {part, *part.host};
  }
  Reactor &reactor() const noexcept { return *host.core.reactor; }
  const void *owner() const noexcept { return &host.core; }
  bool on_loop_thread() const noexcept { return host.core.on_loop_thread(); }
  const RouterParts &route() const noexcept { return host.core.route(); }

  bh_status session_open(const bh_peer &peer, bh_session *out, bh_error *error) const {
    return route().clients.sessions.open(*part.end, peer, out, error);
  }
  bh_status deliver(const bh_incoming &message, bh_delivery *out) const {
    if (part.end == nullptr) return BH_E_UNSUPPORTED;  // the plugin is not a transport
    return route().clients.sessions.deliver_message(*part.end, message, out);
  }
  void stream_gone(bh_session session, std::uint64_t stream) const {
    // In protocol revisions with sessions, closing a stream does not cancel the call; the transport
    // keeps or drops the response.
    if (session == 0 && part.end != nullptr)
      route().clients.sessions.stream_gone(*part.end, stream);
  }
  void session_close(bh_session session, std::uint32_t how) const {
    route().clients.sessions.close(session, how);
  }
  bh_status check_revision(bh_session, std::string_view revision) const {
    return find_revision(revision).has_value() ? BH_OK : BH_E_INVALID;
  }
  void finished() const { host.on_finished(part); }
  void set_process_name(bh_session session, std::string_view name) const {
    route().clients.sessions.set_process_name(session, name);
  }

  void lane_message(bh_lane lane, std::uint64_t exchange, std::string_view message) const {
    route().servers.wires.message(lane, exchange, message);
  }
  void lane_exchange_failed(bh_lane lane, std::uint64_t exchange,
                            const LaneFailure &failure) const {
    route().servers.wires.exchange_failed(lane, exchange, failure);
  }
  void lane_down(bh_lane lane, const LaneFailure &failure) const {
    route().servers.wires.down(lane, failure);
  }
  void lane_closed(bh_lane lane) const { route().servers.wires.closed(lane); }

  bh_status call_complete(bh_call call, std::uint32_t kind, std::string_view json) const {
    return route().servers.tools.complete(call, kind, json);
  }
  void call_progress(bh_call call, double value, double total, std::string_view message) const {
    route().servers.tools.progress(call, value, total, message);
  }
  void call_event(bh_call call, std::uint32_t kind, std::string_view detail) const {
    route().servers.tools.event(call, kind, detail);
  }
  void list_changed(std::uint32_t kind) const {
    if (part.upstream != nullptr) route().servers.tools.list_changed(*part.upstream, kind);
  }
  void resource_updated(std::string_view uri) const {
    if (part.upstream != nullptr) route().servers.tools.resource_updated(*part.upstream, uri);
  }

  static Gate::Decision copy(const bh_verdict &verdict) { return Gate::from(verdict); }
  void policy_decided(std::uint64_t exchange, const Gate::Decision &decision) const {
    host.policies.answered(exchange, decision, part.instance->self());
  }
  void policy_filtered(std::uint64_t question, bool listed) const {
    host.policies.filtered(question, listed, part.instance->self());
  }
  void policy_changed() const { route().servers.reload.policy_changed(); }

  void records_committed(std::uint64_t below) const {
    route().records.recorder.set_committed(part.instance->self(), below);
    route().records.committed();
  }

  static constexpr std::string_view http_missing =
      "no plugin in this profile provides an HTTP client (services.http)";
  const bh_http_service *http_service(void **self) const { return host.plugins.http_service(self); }
};

HostTables::HostTables(const bh_limits &limits)
    : tables_(limits), resume_(resume_functions()), control_(control_functions()) {}

const void *HostTables::find(const Part &part, std::string_view id) const noexcept {
  if (id == BH_EXT_HOST_RESUME) return part.host->sealer.usable() ? &resume_ : nullptr;
  if (id == BH_EXT_HOST_CONTROL) return part.granted("control") ? &control_ : nullptr;
  return tables_.find(id);
}

}  // namespace bulkhead
