// Frames on the sockets of one link. A link forwards the tables of bh.connector/1 and bh.tools/1,
// or of one bh.policy/1 or bh.telemetry/1, to plugins in another process. The *client stub* is in
// the router's process, the *server stub* in the plugins'. A link has one trunk, and one more
// socket per lane, created by the client stub, so that a large message delays its own server only.
#pragma once

#include <cstddef>
#include <cstdint>

#include "bulkhead/abi/core.h"

namespace bulkhead::link {

enum FrameKind : std::uint16_t {
  // Trunk, client stub to server stub. Plugins are named by their instance ids: during a reload
  // this end may still talk to the previous process, where a number belongs to another plugin.
  lane_open = 1,  // fd: the lane's socket; payload: archived LaneText; value: connect time-out, ms
  call_begin,     // exchange; code: flags; value: deadline; payload: archived CallText
  call_cancel,    // exchange
  tools_wanted,  // payload: a plugin's id; answered with plugin_named and its lists, if it is there
  calls_ended,   // the answer to calls_draining: no further frame but call_cancel follows

  // Trunk, server stub to client stub. `plugin` is the number that this trunk has assigned to a
  // plugin's id.
  plugin_named = 15,  // payload: the id
  tools_list,         // code: list kind; value: 1 if the plugin has such items; payload: JSON array
  tools_listed,       // all four have come; from now on changes come by tools_list + tools_changed;
                      // code: BH_TOOLS_... bits
  tools_changed,      // code: list kind
  call_complete,      // exchange; code: result kind; payload: JSON
  call_refused,       // exchange; code: status; payload: text
  call_progress,      // exchange; payload: archived Progress
  call_event,         // exchange; code: BH_RECORD_...; payload: JSON, for the record
  plugin_failed,      // payload: the reason; this plugin stays unavailable
  resource_updated,   // payload: URI
  calls_draining,     // this process ends once its calls have ended; answered with calls_ended

  // A lane's socket, client stub to server stub.
  lane_send = 32,   // code: see lane_code(); value: deadline; exchange; payload: the message
  lane_initialize,  // the same, with BH_LANE_INITIALIZE
  lane_repeatable,  // the same, with BH_LANE_REPEATABLE
  lane_ready,       // payload: revision
  lane_abandon,     // exchange
  lane_close,

  // A lane's socket, server stub to client stub.
  lane_message = 48,  // exchange; payload
  lane_failed,        // exchange; code: status; value: retry after, ms; payload: text
  lane_down,          // code: status; value: retry after, ms; payload: text
  lane_closed,

  // A policy's trunk, client stub to server stub. exchange: the number that is asked under, and
  // answered.
  policy_decide = 64,  // payload: archived PolicyText of `value` bytes, then the arguments
  policy_observe,      // the same, then the result
  policy_filter,       // the same, then nothing
  policy_forget,       // the answer is no longer needed

  // A policy's trunk, server stub to client stub.
  policy_needs = 80,  // first; code: BH_POLICY_... bits. Or plugin_failed
  policy_waits,       // the plugin has seen the question and answers later
  policy_verdict,     // code: BH_VERDICT_...; payload: archived VerdictText of `value` bytes, then
                      // the rewritten text
  policy_refused,     // payload: why there is no verdict
  policy_filtered,    // code: 1: list it
  policy_changed,     // the rules have changed

  // A telemetry plugin's trunk, client stub to server stub.
  telemetry_batch = 96,  // code: how many; payload: that many archived RecordText

  // A telemetry plugin's trunk, server stub to client stub. telemetry_taken also shows that the
  // process is alive: records below the number `exchange` are accepted (0: none), or committed if
  // the plugin commits. plugin_failed may be sent instead.
  telemetry_taken = 112,
  telemetry_needs,    // the first frame, or plugin_failed; code: BH_TELEMETRY_... bits
  telemetry_counters  // payload: archived CountersText; sent when a counter has changed
};

// The code of a lane message: its kind, and the length of the archived HeadersText at the start of
// the payload.
constexpr std::uint32_t lane_code(std::uint32_t kind, std::size_t header_bytes) noexcept {
  return (kind & 0xFF) | static_cast<std::uint32_t>(header_bytes) << 8;
}
constexpr std::uint32_t message_kind(std::uint32_t code) noexcept {
  return code & 0xFF;
}
constexpr std::uint32_t header_bytes(std::uint32_t code) noexcept {
  return code >> 8;
}

// Limit of a policy frame's part that is not the client's message.
inline constexpr std::uint64_t max_head_bytes = 256u << 10;

// Limit of archived headers: two lengths per header, and their count.
inline constexpr std::uint32_t max_header_bytes = BH_HEADER_BYTES + BH_HEADER_COUNT * 8 + 4;

}  // namespace bulkhead::link
