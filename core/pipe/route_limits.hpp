#pragma once

#include <cstddef>
#include <cstdint>

namespace bulkhead::pipe {

// Milliseconds, messages and bytes; see docs/limits.md. The client is paused when there are
// max_pending requests, or when half of max_pending_bytes or max_waiting_bytes is used. It is
// resumed at half of these thresholds. The other half of the bytes leaves room for one more
// message, which is rejected if it does not fit.
struct RouteLimits {
  std::uint64_t first_retry_ms = 50, max_retry_ms = 500;
  std::uint64_t start_ms = 30'000;           // the program fails if there is no connection by then
  std::uint64_t outage_wait_ms = 5'000;      // how long an unsent request waits
  std::uint64_t steady_ms = 1'000;           // connections that last this long are replaced at once
  std::uint64_t linger_ms = 300;             // after the last answer, until the peer closes
  std::uint64_t drain_ms = 330'000;          // for answers, after the client's input has ended
  std::uint64_t reminder_ms = 30'000;        // between log lines about one outage
  std::size_t max_pending = 4'096;           // unanswered requests
  std::size_t max_pending_bytes = 1u << 20;  // their ids and methods
  std::size_t max_waiting_bytes = 4u << 20;  // messages that wait for a connection
  std::size_t max_own_bytes = 1u << 20;      // unread answers that were created by the route
  std::size_t max_handshake_bytes = 64u << 10;
  std::size_t max_subscriptions = 1'024;  // repeated on a new connection
  std::size_t max_subscription_bytes = 256u << 10;
  std::size_t max_questions = 256;    // unanswered requests of the endpoint; the oldest is dropped
  std::size_t max_question_id = 256;  // bytes
};

}  // namespace bulkhead::pipe
