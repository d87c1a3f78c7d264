// Counters since the gateway started, for status and metrics.
//
// Owner: the Router. Used on the reactor thread.
#pragma once

#include <cstdint>

namespace bulkhead {

struct RouterCounters {
  std::uint64_t calls = 0;             // client requests to servers, including refused ones
  std::uint64_t refused_messages = 0;  // invalid or ambiguous messages from clients
  std::uint64_t refused_by_policy = 0;
  std::uint64_t timeouts = 0;
  std::uint64_t policy_timeouts = 0;
  std::uint64_t approvals_asked = 0;
  std::uint64_t approvals_allowed = 0, approvals_denied = 0, approvals_expired = 0;
  std::uint64_t bad_upstream_messages = 0;
  std::uint64_t stray_answers = 0;   // responses to requests that are unknown or no longer open
  std::uint64_t refused_asks = 0;    // server-initiated requests that the gateway refused
  std::uint64_t dropped_events = 0;  // notifications without a recipient, and other lost messages
  std::uint64_t refused_unrecorded = 0;  // requests refused because they could not be recorded
  // Responses that were withheld because their records were not committed in time.
  std::uint64_t answers_withheld = 0;
  std::uint64_t dropped_details = 0;  // invalid or excess events from tools plugins
  std::uint64_t dropped_members = 0;  // members removed from messages; see drop_members()
};

}  // namespace bulkhead
