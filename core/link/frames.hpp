// Frames on the sockets of one link. A link forwards the tables of bh.connector/1 and bh.tools/1,
// or of one bh.policy/1 or bh.telemetry/1, to plugins in another process. The *client stub* is in
// the router's process and the *server stub* in the plugins' process. A link has one trunk, and one
// socket per lane so that a large message delays only its own server. The client stub creates the
// lane sockets.
#pragma once

#include <cstddef>
#include <cstdint>

#include "bulkhead/abi/core.h"

namespace bulkhead::link {

enum FrameKind : std::uint16_t {
  // Trunk, client stub to server stub. These frames identify plugins by instance id: during a
  // reload, the client stub may be connected to the previous process, in which a number belongs to
  // another plugin.
  lane_open = 1,  // fd: the lane's socket; payload: archived LaneText; value: connect timeout, ms
  call_begin,     // exchange; code: flags; value: deadline; payload: archived CallText
  call_cancel,    // exchange
  // payload: a plugin's id. If the plugin exists, answered with plugin_named and its lists.
  tools_wanted,
  calls_ended,  // answers calls_draining: only call_cancel frames follow

  // Trunk, server stub to client stub. `plugin` is the number that this trunk assigned to a
  // plugin's id.
  plugin_named = 15,  // payload: the id
  tools_list,         // code: list kind; value: 1 if the plugin has such items; payload: JSON array
  // All four lists have been sent. Later changes are sent as tools_list followed by tools_changed.
  // code: BH_TOOLS_... bits.
  tools_listed,
  tools_changed,     // code: list kind
  call_complete,     // exchange; code: result kind; payload: JSON
  call_refused,      // exchange; code: status; payload: text
  call_progress,     // exchange; payload: archived Progress
  call_event,        // exchange; code: BH_RECORD_...; payload: JSON, to be recorded
  plugin_failed,     // payload: the reason; this plugin stays unavailable
  resource_updated,  // payload: URI
  calls_draining,    // this process ends once its calls have ended; answered by calls_ended

  // Lane socket, client stub to server stub.
  lane_send = 32,   // code: see lane_code(); value: deadline; exchange; payload: the message
  lane_initialize,  // like lane_send, with BH_LANE_INITIALIZE
  lane_repeatable,  // like lane_send, with BH_LANE_REPEATABLE
  lane_ready,       // payload: revision
  lane_abandon,     // exchange
  lane_close,

  // Lane socket, server stub to client stub.
  lane_message = 48,  // exchange; payload
  lane_failed,        // exchange; code: status; value: retry after, ms; payload: text
  lane_down,          // code: status; value: retry after, ms; payload: text
  lane_closed,

  // Policy trunk, client stub to server stub. A request and its answer have the same `exchange`.
  policy_decide = 64,  // payload: archived PolicyText of `value` bytes, followed by the arguments
  policy_observe,      // like policy_decide, with the result instead of the arguments
  policy_filter,       // like policy_decide, without arguments
  policy_forget,       // the answer is no longer needed

  // Policy trunk, server stub to client stub.
  policy_needs = 80,  // sent first, unless plugin_failed is; code: BH_POLICY_... bits
  policy_waits,       // the plugin has received the request and answers later
  // code: BH_VERDICT_...; payload: archived VerdictText of `value` bytes, followed by the rewritten
  // text.
  policy_verdict,
  policy_refused,   // payload: the reason why there is no verdict
  policy_filtered,  // code: 1 to list the item
  policy_changed,   // the rules have changed

  // Telemetry trunk, client stub to server stub.
  telemetry_batch = 96,  // code: number of records; payload: that many archived RecordText

  // Telemetry trunk, server stub to client stub. telemetry_taken means that records below the
  // number `exchange` (0: none) have been accepted or, if the plugin commits, have been committed.
  // It also shows that the process is alive. plugin_failed may be sent instead.
  telemetry_taken = 112,
  telemetry_needs,    // sent first, unless plugin_failed is; code: BH_TELEMETRY_... bits
  telemetry_counters  // payload: archived CountersText; sent when a counter has changed
};

// Returns the code of a lane message, which contains the message kind and the length of the
// archived HeadersText at the start of the payload.
constexpr std::uint32_t lane_code(std::uint32_t kind, std::size_t header_bytes) noexcept {
  return (kind & 0xFF) | static_cast<std::uint32_t>(header_bytes) << 8;
}
constexpr std::uint32_t message_kind(std::uint32_t code) noexcept {
  return code & 0xFF;
}
constexpr std::uint32_t header_bytes(std::uint32_t code) noexcept {
  return code >> 8;
}

// Size limit for the part of a policy frame that does not come from the client's message.
inline constexpr std::uint64_t max_head_bytes = 256u << 10;

// Size limit for archived headers: two lengths per header, plus the number of headers.
inline constexpr std::uint32_t max_header_bytes = BH_HEADER_BYTES + BH_HEADER_COUNT * 8 + 4;

}  // namespace bulkhead::link
