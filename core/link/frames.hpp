// The frames of a link. A link forwards calls to plugins in another process: calls through the
// tables of bh.connector/1 and bh.tools/1, or through the table of a single bh.policy/1 or
// bh.telemetry/1 plugin.
//
// The *client stub* runs in the router's process, the *server stub* in the plugins' process. They
// share one socket, the trunk. In addition, the client stub creates a socket for each lane, so a
// large message for one server does not delay the others.
//
// The comment at each frame describes how the header's fields and the payload are used.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "bulkhead/abi/core.h"
#include "bulkhead/abi/ext/draft/state.h"

namespace bulkhead::link {

enum FrameKind : std::uint16_t {
  // Trunk, client stub to server stub. These frames identify a plugin by its instance ID, not by
  // its number: during a reload, they may reach the previous process, in which the number belongs
  // to another plugin.
  //
  // fd: the lane's socket; payload: archived LaneText; value: connection timeout in ms.
  lane_open = 1,
  call_begin,   // exchange; code: flags; value: deadline; payload: archived CallText
  call_cancel,  // exchange; code: BH_CANCEL_...; payload: the client's reason
  // payload: a plugin's ID. If the plugin exists, the response is plugin_named and the plugin's
  // lists.
  tools_wanted,
  calls_ended,  // response to calls_draining: of the call frames, only call_cancel may follow

  // Trunk, server stub to client stub. `plugin` is the number that plugin_named assigned on this
  // trunk.
  plugin_named = 15,  // payload: the plugin's ID
  tools_list,         // code: list kind; value: 1 if the plugin has such items; payload: JSON array
  // All four lists have been sent. If a list changes later, tools_list and then tools_changed are
  // sent or, if the plugin had failed, tools_listed again. code: BH_TOOLS_... bits.
  tools_listed,
  tools_changed,  // code: list kind
  call_complete,  // exchange; code: result kind; payload: JSON
  // exchange; code: status; payload: error message. If the status is BH_WOULD_BLOCK, the process is
  // draining and returns the call: plugin: its flags; value: its deadline; payload: its CallText.
  call_refused,
  call_progress,     // exchange; payload: archived Progress
  call_event,        // exchange; code: BH_RECORD_...; payload: JSON for the session database
  plugin_failed,     // payload: the reason; the plugin is unavailable until the next tools_listed
  resource_updated,  // payload: URI
  calls_draining,    // the process exits after its in-flight calls; response: calls_ended

  // Lane socket, client stub to server stub.
  lane_send = 32,   // exchange; code: see lane_code(); value: deadline; payload: the message
  lane_initialize,  // a lane_send with BH_LANE_INITIALIZE
  lane_repeatable,  // a lane_send with BH_LANE_REPEATABLE
  lane_ready,       // payload: protocol revision
  lane_abandon,     // exchange
  lane_close,

  // Lane socket, server stub to client stub.
  lane_message = 48,  // exchange; payload: the message
  lane_failed,        // exchange; code: status; value: retry delay in ms; payload: FailureText
  lane_down,          // code: status; value: retry delay in ms; payload: FailureText
  lane_closed,

  // Policy trunk, client stub to server stub. A response has the `exchange` of its request.
  policy_decide = 64,  // payload: archived PolicyText of `value` bytes, then the arguments
  policy_observe,      // payload: archived PolicyText of `value` bytes, then the result
  policy_filter,       // payload: archived PolicyText of `value` bytes
  policy_forget,       // exchange; a response to this request is no longer needed
  // No more requests follow, because another process replaces this one. If the state was exported,
  // the process returns the requests that it has not answered (policy_returned).
  policy_end,
  // exchange: a number for the response, policy_state. Until policy_end or policy_continue, the
  // process sends no verdicts.
  policy_export,
  policy_import,    // exchange: a number for the response, policy_imported; payload: StateText
  policy_continue,  // the state that was exported is not used; requests follow

  // Policy trunk, server stub to client stub.
  // First frame, unless plugin_failed is sent. code: BH_POLICY_... bits; value: 1 if the plugin
  // offers bh.state/1.
  policy_needs = 80,
  policy_waits,  // the plugin has received the request and will decide later
  // code: BH_VERDICT_...; payload: archived VerdictText of `value` bytes, then the rewritten text.
  policy_verdict,
  policy_refused,   // payload: the reason why there is no verdict
  policy_filtered,  // code: 1 if the item is listed
  policy_changed,   // the rules have changed
  policy_state,     // code: a status; payload: archived StateText, or an error message
  policy_imported,  // code: a status; payload: an error message
  // The process will not answer this request. code: policy_decide or policy_observe; payload and
  // value: as in the request.
  policy_returned,

  // Telemetry trunk, client stub to server stub.
  //
  // exchange: an earlier endpoint may have sent records below this number; code: number of records;
  // payload: archived RecordTexts.
  telemetry_batch = 96,

  // Telemetry trunk, server stub to client stub. telemetry_taken acknowledges all records whose
  // numbers are below `exchange` (0: none): they have been accepted or, if the plugin commits,
  // committed. It also shows that the process is responsive.
  telemetry_taken = 112,
  telemetry_needs,    // first frame, unless plugin_failed is sent; code: BH_TELEMETRY_... bits
  telemetry_counters  // payload: archived CountersText; sent after counters have changed
};

// Returns the `code` of a lane message: the message kind, and the length of the archived
// HeadersText that precedes the message.
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

// Size limit for the payload of a policy frame. Only policy_state and policy_import may exceed the
// limit for messages.
inline std::uint64_t max_policy_frame_bytes(const bh_limits &limits) noexcept {
  return std::max<std::uint64_t>(limits.message_bytes, BH_STATE_BYTES) + max_head_bytes;
}

// Size limit for archived headers: names and values, two lengths per header, and the number of
// headers.
inline constexpr std::uint32_t max_header_bytes = BH_HEADER_BYTES + BH_HEADER_COUNT * 8 + 4;

}  // namespace bulkhead::link
