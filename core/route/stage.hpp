// The stages of a request: what the request waits for, and for how long. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>

#include "bulkhead/abi/ext/telemetry.h"
#include "profile/profile.hpp"

namespace bulkhead {

// What a request is waiting for. The steps between the stages are described in calls.hpp.
enum class Stage : std::uint8_t {
  open,             // not waiting: a step is running
  awaiting_list,    // the lists of servers; there is no call yet, see View::Waiter
  checking,         // the pool, which checks for duplicate members
  deciding,         // the policy
  approving,        // a human approver
  recording,        // the intent record
  queued,           // its turn in a lane
  at_server,        // the server
  suspended,        // the client's answer to a server-initiated request
  awaiting_repeat,  // the client, which answers such requests by repeating its own request
  answer_checking,  // the pool
  answer_deciding,  // the policy
  asking            // the client's input for a server without sessions, or a pause; see InputRounds
};

// Returns true if the policy has been asked to decide or is about to be asked.
constexpr bool is_before_policy(Stage stage) noexcept {
  return stage == Stage::checking || stage == Stage::deciding || stage == Stage::answer_checking ||
         stage == Stage::answer_deciding;
}

// Returns the time-out of a stage for a message of this size, or 0 if the stage has no time-out of
// its own.
//
// In `queued` and `at_server`, the server's time-out applies; it is armed when the call starts and
// after each wait. In `suspended` and `awaiting_repeat`, the server's time-out is stopped, and
// limits.ask_timeout_ms applies to each of the server's requests. In `asking`, each request to the
// client expires after limits.ask_timeout_ms. The time-out of the stage itself is longer, so it
// expires only if the policy does not decide about one of these requests.
constexpr std::uint64_t stage_time_ms(const Limits &limits, Stage stage, std::size_t bytes) {
  constexpr std::size_t bytes_per_ms = 8'192;
  switch (stage) {
    case Stage::open:
    case Stage::queued:
    case Stage::at_server:
    case Stage::suspended:
    case Stage::awaiting_repeat:
      return 0;
    case Stage::awaiting_list:
      return limits.first_list_wait_ms;
    case Stage::checking:
    case Stage::deciding:
    case Stage::answer_checking:
    case Stage::answer_deciding:
      return limits.policy_timeout_ms + bytes / bytes_per_ms;
    case Stage::asking:
      return limits.ask_timeout_ms + 2 * limits.policy_timeout_ms + 5'000;
    case Stage::approving:
      return limits.approval_timeout_ms;
    case Stage::recording:
      return std::uint64_t{BH_TELEMETRY_COMMIT_MS};
  }
  return 0;
}

}  // namespace bulkhead
