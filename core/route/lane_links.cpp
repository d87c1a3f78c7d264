#include "route/lane_links.hpp"

#include <string>

#include "route/calls.hpp"
#include "route/splice.hpp"
#include "route/wire_lane.hpp"

namespace bulkhead {

void LaneLinks::message_lost(const Lane &lane, mcp::Method method) {
  ++needs_.counters.dropped_events;
  log(BH_LOG_ERROR, "server \"" + lane.upstream().name() + "\": " +
                        std::string(mcp::to_string(method)) + " was dropped: " + Splice::failure);
}

void LaneLinks::timed_out(Exchange &e) {
  ++needs_.counters.timeouts;
  Lane *lane = e.lane;
  const std::uint64_t own = e.id;
  const Error error{BH_E_TIMEOUT, "server \"" + lane->upstream().name() + "\" did not respond to " +
                                      std::string(mcp::to_string(e.method)) +
                                      (e.name.empty() ? "" : " \"" + e.name + "\"") + " within " +
                                      std::to_string(e.timeout_ms) + " ms"};
  lane->abandon(own);  // a connector may lose the connection inside this call
  Exchange *still = needs_.exchanges.get(own);
  if (still == nullptr) return;
  if (lane->upstream().tools != nullptr) return drop(*still);
  static_cast<WireLane *>(lane)->own_answer(*still, nullptr, {}, &error);
}

void LaneLinks::send_again(Call &call) {
  needs_.calls.send_again(call);
}

bool LaneLinks::may_be_sent(Call &call) {
  return needs_.calls.may_be_sent(call);
}

void LaneLinks::items_changed(Lane &lane) {
  needs_.views.items_changed(lane);
  needs_.calls.definitions_changed(lane);
}

// Restores, on the new connection, the state that clients had set on the old connection.
void LaneLinks::lane_ready(Lane &lane) {
  Subscriptions::lane_ready(lane);
  Views::update_log_level(lane);
}

void LaneLinks::lane_lost(Lane &lane) {
  Attribution::connection_lost(lane);
  needs_.asks.connection_lost(lane);
}

}  // namespace bulkhead
