// Counts events of this transport. `bulkhead status --json` shows the counters.
#pragma once

#include <bulkhead/cpp/host.hpp>

namespace transport_vsock {

class Counters {
 public:
  explicit Counters(const bh::Host &host)
      : host_(host), table_(host.ext<bh_host_metrics>(BH_EXT_HOST_METRICS)) {}

  void add(bh_metric metric) const noexcept {
    if (table_ != nullptr && metric != 0) table_->add(host_.ctx(), metric, 1);
  }

 private:
  bh_metric make(std::string_view name) const noexcept {
    return table_ == nullptr ? 0 : table_->counter(host_.ctx(), bh::str(name));
  }
  const bh::Host &host_;
  const bh_host_metrics *const table_;

 public:
  const bh_metric connections = make("vsock.connections");
  const bh_metric refused = make("vsock.peers_refused");         // not listed, or wrong local_token
  const bh_metric too_many = make("vsock.connections_refused");  // one of the limits is reached
  const bh_metric frames = make("vsock.frames");                 // connections that use frames
  const bh_metric lines = make("vsock.lines");                   // connections that use lines
  const bh_metric bad_frames = make("vsock.bad_frames");  // skipped; error response if possible
  const bh_metric mixed_up =
      make("vsock.mixed_up");  // a request, or no JSON-RPC message, in a notification frame
  const bh_metric handed_off = make("vsock.handed_off");
  const bh_metric handoff_failed = make("vsock.handoff_failed");
  // Reasons for closing connections.
  const bh_metric eof = make("vsock.closed.eof");
  const bh_metric error = make("vsock.closed.error");
  const bh_metric sniff_timeout = make("vsock.closed.sniff_timeout");
  const bh_metric not_mcp = make("vsock.closed.not_mcp");
  const bh_metric framing = make("vsock.closed.framing");      // a total length out of range
  const bh_metric stream_order = make("vsock.closed.stream");  // a number repeats or decreases
  const bh_metric too_slow = make("vsock.closed.too_slow");    // the guest does not read responses
  const bh_metric host_ended = make("vsock.closed.host");
};

}  // namespace transport_vsock
