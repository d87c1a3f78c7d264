#include "embed/abi_limits.hpp"

namespace bulkhead {

bh_limits abi_limits(const Limits &limits) {
  bh_limits out{};
  out.size = sizeof out;
  out.message_bytes = limits.message_bytes;
  out.header_bytes = limits.header_bytes;
  out.sessions = limits.sessions;
  out.session_idle_ms = limits.session_idle_ms;
  out.event_buffer_bytes = limits.event_buffer_bytes;
  out.write_queue_bytes = limits.write_queue_bytes;
  out.write_stall_ms = limits.write_stall_ms;
  out.connect_timeout_ms = limits.connect_timeout_ms;
  out.request_read_ms = limits.request_read_ms;
  out.shutdown_grace_ms = limits.shutdown_grace_ms;
  out.in_flight_per_session = limits.in_flight_per_session;
  return out;
}

}  // namespace bulkhead
