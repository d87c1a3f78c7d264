#pragma once

#include <cstddef>
#include <cstdint>

namespace bulkhead::pipe {

// Milliseconds, messages and bytes; docs/limits.md. The client is held when there are max_pending
// requests, or half of max_pending_bytes or max_waiting_bytes, and until there is half of that; so
// one message finds room behind these, unless it alone is too much. That one is refused.
struct RouteLimits {
  std::uint64_t first_retry_ms = 50, max_retry_ms = 500;
  std::uint64_t start_ms = 30'000;           // without any connection the program gives up
  std::uint64_t outage_wait_ms = 5'000;      // what an unsent request waits for a lost connection
  std::uint64_t steady_ms = 1'000;           // a connection that stood so long is replaced at once
  std::uint64_t linger_ms = 300;             // after the last answer, until the peer ends its half
  std::uint64_t drain_ms = 330'000;          // for answers after the client's input has ended
  std::uint64_t reminder_ms = 30'000;        // between log lines of one outage
  std::size_t max_pending = 4'096;           // requests without an answer
  std::size_t max_pending_bytes = 1u << 20;  // of their ids and methods
  std::size_t max_waiting_bytes = 4u << 20;  // of messages that wait for a connection
  std::size_t max_own_bytes = 1u << 20;      // of answers made here that the client does not take
  std::size_t max_handshake_bytes = 64u << 10;
  std::size_t max_subscriptions = 1'024;  // repeated on a new connection
  std::size_t max_subscription_bytes = 256u << 10;
  std::size_t max_questions = 256;    // of the endpoint, without an answer; the oldest goes
  std::size_t max_question_id = 256;  // bytes
};

}  // namespace bulkhead::pipe
