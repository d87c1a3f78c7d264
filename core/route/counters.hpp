// Counters since the gateway started, for status and metrics. Owner: the Router. Used on the
// reactor thread.
#pragma once

#include <cstdint>

namespace bulkhead {

struct RouterCounters {
  std::uint64_t calls = 0;             // client requests to servers
  std::uint64_t refused_messages = 0;  // from clients, malformed or ambiguous
  std::uint64_t refused_by_policy = 0;
  std::uint64_t timeouts = 0;
  std::uint64_t policy_timeouts = 0;  // decisions of the policy that timed out
  std::uint64_t approvals_asked = 0;  // calls that required approval
  std::uint64_t approvals_allowed = 0, approvals_denied = 0, approvals_expired = 0;
  std::uint64_t bad_upstream_messages = 0;
  std::uint64_t stray_answers = 0;       // answers to exchanges that had ended
  std::uint64_t refused_asks = 0;        // server-initiated requests that no client could answer
  std::uint64_t dropped_events = 0;      // notifications without a receiver
  std::uint64_t refused_unrecorded = 0;  // requests that could not be recorded
  std::uint64_t answers_withheld = 0;    // answers whose records were not committed in time
  std::uint64_t dropped_details = 0;     // invalid or excess events of tools plugins
  std::uint64_t dropped_members = 0;     // unknown envelope members of messages
};

}  // namespace bulkhead
