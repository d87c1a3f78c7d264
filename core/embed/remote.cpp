// Servers and tools plugins that run in another process: links and the router.
#include "bulkhead/cpp/basics.hpp"
#include "embed/host_impl.hpp"

namespace bulkhead {

bool HostImpl::use_remote(Upstream &upstream, bool tools) {
  const auto at = remote_.find(upstream.name());
  if (at == remote_.end()) return false;
  upstream.self = near(at->second.compartment).plugin(at->second.plugin, upstream.name());
  if (tools) {
    upstream.tools = &link::Near::tools();
  } else {
    upstream.connector = &link::Near::connector();
  }
  return true;
}

std::string HostImpl::remote_state(const Part &part) const {
  const RemoteUse &use = remote_.at(part.use.id);
  const auto near = nears_.find(use.compartment);
  const std::string_view failure =
      near == nears_.end() ? std::string_view() : near->second->failure(use.plugin);
  if (!failure.empty()) return "failed: " + std::string(failure);
  return "in compartment " + use.compartment;
}

link::Near &HostImpl::near(const std::string &compartment) {
  auto &near = nears_[compartment];
  if (near == nullptr) {
    link::NearEvents &events = *this;
    near = std::make_unique<link::Near>(*reactor_, compartment, limits_, events);
  }
  return *near;
}

void HostImpl::attach(const std::string &compartment, OwnedFd trunk) {
  if (!stopped_) near(compartment).attach(std::move(trunk));
}

void HostImpl::give_up(const std::string &compartment, const std::string &reason) {
  if (!stopped_) near(compartment).give_up(reason);
}

void HostImpl::lane_message(bh_lane lane, std::uint64_t exchange, std::string_view message) {
  router_->upstream_message(lane, exchange, message);
}
void HostImpl::lane_exchange_failed(bh_lane lane, std::uint64_t exchange, const Error &error) {
  router_->exchange_failed(lane, exchange, error);
}
void HostImpl::lane_down(bh_lane lane, const Error &error, std::uint32_t retry_after_ms) {
  router_->lane_down(lane, error, retry_after_ms);
}
void HostImpl::lane_closed(bh_lane lane) {
  router_->lane_closed(lane);
}
void HostImpl::call_complete(bh_call call, std::uint32_t kind, std::string_view json) {
  router_->tools_complete(call, kind, json);
}
void HostImpl::call_failed(bh_call call, const Error &error) {
  router_->tools_refused(call, error);
}
void HostImpl::call_progress(bh_call call, double value, double total, std::string_view message) {
  router_->tools_progress(call, value, total, message);
}
void HostImpl::tools_changed(const std::string &server, std::uint32_t kind) {
  for (const auto &part : tools_) {
    if (part->use.id == server && part->upstream != nullptr) {
      router_->tools_changed(*part->upstream, kind);
    }
  }
}

}  // namespace bulkhead
