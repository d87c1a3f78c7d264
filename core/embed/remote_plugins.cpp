// Servers and plugins that run in another process: links and the router.
#include "bulkhead/cpp/basics.hpp"
#include "embed/host_impl.hpp"

namespace bulkhead {

bool HostImpl::use_remote(Upstream &upstream, bool tools) {
  const auto at = remote_.find(upstream.name());
  if (at == remote_.end()) return false;
  link::Near &link = near(at->second.compartment);
  upstream.self = tools ? link.fresh_tools(at->second.plugin) : link.plugin(at->second.plugin);
  if (tools) {
    upstream.tools = &link::Near::tools();
  } else {
    upstream.connector = &link::Near::connector();
  }
  return true;
}

std::string HostImpl::remote_state(const Part &part) const {
  std::string failure;
  if (part.near_policy != nullptr) {
    failure = part.near_policy->failure();
  } else if (part.near_telemetry != nullptr) {
    failure = part.near_telemetry->failure();
  } else {
    const RemoteUse &use = remote_.at(part.use.id);
    const auto near = nears_.find(use.compartment);
    if (near != nears_.end()) failure = near->second->failure(use.plugin);
  }
  return failure.empty() ? "in compartment " + part.compartment : "failed: " + failure;
}

link::Near &HostImpl::near(const std::string &compartment) {
  auto &near = nears_[compartment];
  if (near == nullptr) {
    link::NearEvents &events = *this;
    near = std::make_unique<link::Near>(*reactor_, compartment, limits_, events);
  }
  return *near;
}

// A policy or telemetry plugin has a compartment, and so a trunk, to itself.
void HostImpl::make_near(std::string_view group, Part &part) {
  if (group == "policies") {
    link::PolicyEvents &events = *this;
    part.near_policy =
        std::make_unique<link::NearPolicy>(*reactor_, part.compartment, limits_, events);
  } else if (group == "telemetry") {
    link::TelemetryEvents &events = *this;
    part.near_telemetry = std::make_unique<link::NearTelemetry>(*reactor_, part.compartment,
                                                                part.use.required, events);
  }
}

void HostImpl::attach(const std::string &compartment, OwnedFd trunk) {
  if (stopped_) return;
  for (const auto &part : policies_) {
    if (part->near_policy != nullptr && part->compartment == compartment) {
      return part->near_policy->attach(std::move(trunk));
    }
  }
  for (const auto &part : telemetry_) {
    if (part->near_telemetry != nullptr && part->compartment == compartment) {
      return part->near_telemetry->attach(std::move(trunk));
    }
  }
  near(compartment).attach(std::move(trunk));
}

void HostImpl::give_up(const std::string &compartment, const std::string &reason) {
  if (stopped_) return;
  for (const auto &part : policies_) {
    if (part->near_policy != nullptr && part->compartment == compartment) {
      return part->near_policy->give_up(reason);
    }
  }
  for (const auto &part : telemetry_) {
    if (part->near_telemetry != nullptr && part->compartment == compartment) {
      return part->near_telemetry->give_up(reason);
    }
  }
  near(compartment).give_up(reason);
}

void HostImpl::telemetry_wants(const std::string &compartment, std::uint32_t needs) {
  if (stopped_) return;
  for (const auto &part : telemetry_) {
    if (part->near_telemetry != nullptr && part->compartment == compartment) {
      return part->near_telemetry->expect(needs);
    }
  }
}

void HostImpl::policy_decided(std::uint64_t exchange, const bh_verdict &verdict) {
  policy_answered(exchange, Gate::from(verdict));
}
void HostImpl::policy_refused(std::uint64_t exchange, std::string_view why) {
  policy_answered(exchange, Gate::failed("the policy failed: " + std::string(why)));
}
void HostImpl::policy_filtered(std::uint64_t question, bool listed) {
  policy_shown(question, listed);
}
void HostImpl::policy_changed() {
  policy_stack_.rules_changed();
  static_cast<void>(use_policies());  // what they need may be other now
  router_->reload().policy_changed();
}
void HostImpl::telemetry_taken() {
  for (const auto &part : telemetry_) {
    const link::NearTelemetry *near = part->near_telemetry.get();
    if (near != nullptr) router_->recorder().set_acknowledged(near, near->acknowledged_below());
  }
  router_->recorder().flush();
  router_->records_committed();
}
void HostImpl::telemetry_committed(const link::NearTelemetry &near, std::uint64_t below) {
  router_->recorder().set_committed(&near, below);
  router_->records_committed();
}
void HostImpl::process_useless(const std::string &compartment) {
  log(BH_LOG_ERROR, compartment, "it does not react, or sends what it may not; it is ended");
  if (options_.on_useless) options_.on_useless(compartment);
}

// Everything that was recorded is where it should be, or nobody is there to take it.
bool HostImpl::telemetry_idle() {
  router_->recorder().flush();
  for (const auto &part : telemetry_) {
    if (part->near_telemetry != nullptr && !part->near_telemetry->idle()) return false;
  }
  return true;
}

void HostImpl::lane_message(bh_lane lane, std::uint64_t exchange, std::string_view message) {
  router_->wires().message(lane, exchange, message);
}
void HostImpl::lane_exchange_failed(bh_lane lane, std::uint64_t exchange, const Error &error) {
  router_->wires().exchange_failed(lane, exchange, error);
}
void HostImpl::lane_down(bh_lane lane, const Error &error, std::uint32_t retry_after_ms) {
  router_->wires().down(lane, error, retry_after_ms);
}
void HostImpl::lane_closed(bh_lane lane) {
  router_->wires().closed(lane);
}
void HostImpl::call_complete(bh_call call, std::uint32_t kind, std::string_view json) {
  router_->tools().complete(call, kind, json);
}
void HostImpl::call_failed(bh_call call, const Error &error) {
  router_->tools().refused(call, error);
}
void HostImpl::call_progress(bh_call call, double value, double total, std::string_view message) {
  router_->tools().progress(call, value, total, message);
}
void HostImpl::call_event(bh_call call, std::uint32_t kind, std::string_view detail) {
  router_->tools().event(call, kind, detail);
}
std::vector<Upstream *> HostImpl::upstreams_of(const std::string &plugin) const {
  std::vector<Upstream *> found;
  for (const auto &part : tools_) {
    const auto at = remote_.find(part->use.id);
    if (at == remote_.end() || at->second.plugin != plugin || part->upstream == nullptr) continue;
    found.push_back(part->upstream);
  }
  return found;
}
void HostImpl::tools_changed(const std::string &plugin, std::uint32_t kind) {
  for (Upstream *upstream : upstreams_of(plugin)) router_->tools().list_changed(*upstream, kind);
}
void HostImpl::tools_began(const std::string &plugin) {
  for (Upstream *upstream : upstreams_of(plugin)) router_->tools().began(*upstream);
}
void HostImpl::resource_updated(const std::string &plugin, std::string_view uri) {
  for (Upstream *upstream : upstreams_of(plugin)) router_->tools().resource_updated(*upstream, uri);
}

}  // namespace bulkhead
