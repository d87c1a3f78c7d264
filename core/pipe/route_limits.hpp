#pragma once

#include <cstddef>
#include <cstdint>

namespace bulkhead::pipe {

// Limits in milliseconds, messages and bytes; see docs/limits.md. The client is paused when usage
// reaches max_pending, max_own_bytes, half of max_pending_bytes, or half of max_waiting_bytes. It
// is resumed when usage has dropped below half of that threshold. The other half of the last two
// limits is reserved for messages that arrive before the pause takes effect; a message that does
// not fit is rejected.
struct RouteLimits {
  std::uint64_t first_retry_ms = 50, max_retry_ms = 500;
  std::uint64_t start_ms = 30'000;       // the program fails if there is no connection by then
  std::uint64_t outage_wait_ms = 5'000;  // how long unsent requests wait after a loss
  // if a connection lasted at least this long, the first retry after it is lost is immediate
  std::uint64_t steady_ms = 1'000;
  std::uint64_t linger_ms = 300;  // time between the last response and closing the connection
  // maximum time between two responses after the client's input has ended
  std::uint64_t drain_ms = 330'000;
  std::uint64_t reminder_ms = 30'000;        // between log lines about the same outage
  std::size_t max_pending = 4'096;           // unanswered requests
  std::size_t max_pending_bytes = 1u << 20;  // their IDs and methods
  std::size_t max_waiting_bytes = 4u << 20;  // messages that wait for a connection
  std::size_t max_own_bytes = 1u << 20;      // unread responses that the route created
  std::size_t max_handshake_bytes = 64u << 10;
  std::size_t max_subscriptions = 1'024;  // subscriptions that are repeated on a new connection
  std::size_t max_subscription_bytes = 256u << 10;
  std::size_t max_questions = 256;    // unanswered requests of the endpoint; the oldest is dropped
  std::size_t max_question_id = 256;  // bytes
};

}  // namespace bulkhead::pipe
