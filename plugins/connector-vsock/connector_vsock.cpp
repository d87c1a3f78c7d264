#include "connector-vsock/connector_vsock.hpp"

#include <algorithm>
#include <utility>

namespace connector_vsock {
namespace {

Lane &lane_of(void *p) {
  return *static_cast<Lane *>(p);
}

const bh_wire wire_table{sizeof(bh_wire), 0,
                         [](void *s, void *lane) { bh::self<ConnectorVsock>(s).lane_finish(lane); },
                         [](void *s, void *lane, std::uint32_t hold) {
                           bh::self<ConnectorVsock>(s).lane_hold(lane, hold != 0);
                         }};

}  // namespace

ConnectorVsock::ConnectorVsock(const bh_host *raw)
    : Shared(host_,
             static_cast<const bh_host_connector *>(raw->get_ext(raw->ctx, BH_EXT_HOST_CONNECTOR)),
             static_cast<const bh_host_wire *>(raw->get_ext(raw->ctx, BH_EXT_HOST_WIRE))),
      host_(raw) {}

bh_status ConnectorVsock::configure(bh_str, bh_error *error) {
  if (up != nullptr && up->limits != nullptr && host_.has_reactor()) return BH_OK;
  return bh::fail(error, BH_E_UNSUPPORTED,
                  "connector-vsock requires a host with " BH_EXT_HOST_CONNECTOR
                  ", " BH_EXT_HOST_EXECUTOR " and " BH_EXT_HOST_FD);
}

const void *ConnectorVsock::get_ext(const char *id) noexcept {
  if (bh::is(id, BH_EXT_CONNECTOR)) return bh::connector_table<ConnectorVsock>();
  return bh::is(id, BH_EXT_WIRE) ? &wire_table : nullptr;
}

void ConnectorVsock::stop() noexcept {
  to_flush_.clear();
  to_finish_.clear();
  while (!lanes_.empty()) {
    const std::unique_ptr<Lane> lane = take(*lanes_.back());
    if (lane->closing()) up->lane_closed(host_.ctx(), lane->handle());
  }
}

bh_status ConnectorVsock::lane_open(bh_lane handle, const bh_lane_info &lane_info, void **out,
                                    bh_error *error) {
  Definition definition;
  const bh_status parsed = parse_definition(bh::view(lane_info.definition), &definition, error);
  if (parsed != BH_OK) return parsed;
  auto lane = std::make_unique<Lane>(*this, handle, std::move(definition));
  const bh_status status = lane->open(lane_info.connect_timeout_ms, error);
  if (status != BH_OK) return status;
  *out = lane.get();
  lanes_.push_back(std::move(lane));
  return BH_OK;
}

bh_status ConnectorVsock::lane_send(void *lane, const bh_lane_message &message, bh_error *error) {
  return lane_of(lane).send(message, error);
}

void ConnectorVsock::lane_abandon(void *lane, std::uint64_t exchange) noexcept {
  lane_of(lane).abandon(exchange);
}

void ConnectorVsock::lane_close(void *lane) {
  lane_of(lane).close();
}

void ConnectorVsock::lane_finish(void *lane) {
  bh::guarded(nullptr, [&] {
    lane_of(lane).finish();
    return BH_OK;
  });
}

void ConnectorVsock::lane_hold(void *lane, bool hold) {
  bh::guarded(nullptr, [&] {
    lane_of(lane).hold(hold);
    return BH_OK;
  });
}

std::unique_ptr<Lane> ConnectorVsock::take(const Lane &lane) {
  const auto at = std::find_if(lanes_.begin(), lanes_.end(),
                               [&](const auto &each) { return each.get() == &lane; });
  std::unique_ptr<Lane> taken = std::move(*at);
  lanes_.erase(at);
  return taken;
}

void ConnectorVsock::flush_later(Lane &lane) {
  if (std::exchange(lane.flush_queued, true)) return;
  to_flush_.push_back(&lane);
  defer_turn_end();
}

void ConnectorVsock::finished(Lane &lane) {
  to_finish_.push_back(&lane);
  defer_turn_end();
}

void ConnectorVsock::defer_turn_end() {
  if (std::exchange(deferred_, true)) return;
  host_.defer(bh::callback<&ConnectorVsock::at_turn_end>(this));
}

void ConnectorVsock::at_turn_end() {
  deferred_ = false;
  flushing_.swap(to_flush_);  // swapping the vectors reuses their memory
  for (Lane *lane : flushing_) {
    lane->flush_queued = false;
    lane->flush();
  }
  flushing_.clear();
  const std::vector<Lane *> finish = std::exchange(to_finish_, {});
  for (Lane *lane : finish) {
    std::erase(to_flush_, lane);
    const bh_lane handle = lane->handle();
    take(*lane).reset();
    up->lane_closed(host_.ctx(), handle);
  }
}

}  // namespace connector_vsock
