// What has happened since the start, for status and metrics. Owner: the Router. Thread: [io].
#pragma once

#include <cstdint>

namespace bulkhead {

struct RouterCounters {
  std::uint64_t calls = 0;             // client requests that went to an upstream
  std::uint64_t refused_messages = 0;  // from clients, malformed or ambiguous
  std::uint64_t refused_by_policy = 0;
  std::uint64_t timeouts = 0;
  std::uint64_t policy_timeouts = 0;  // answers that the policy did not give in time
  std::uint64_t approvals_asked = 0;  // calls that have waited for a person
  std::uint64_t approvals_allowed = 0, approvals_denied = 0, approvals_expired = 0;
  std::uint64_t bad_upstream_messages = 0;
  std::uint64_t stray_answers = 0;       // for an exchange that had ended
  std::uint64_t refused_asks = 0;        // of upstreams, not attributable or not possible
  std::uint64_t dropped_events = 0;      // notifications that belong to nobody
  std::uint64_t refused_unrecorded = 0;  // requests, since their records might have found no place
  std::uint64_t answers_withheld = 0;    // since their records were not committed in time
  std::uint64_t dropped_details = 0;     // that tools plugins wanted on record
  std::uint64_t dropped_members = 0;     // of messages, which no side may send
};

}  // namespace bulkhead
