// The handshake of the client, which is repeated on a new connection: a new endpoint knows nothing
// of the client. Owner: Route. Limit: max_handshake_bytes; a longer one is not repeated.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "pipe/ends.hpp"
#include "pipe/route_limits.hpp"

namespace bulkhead::pipe {

class Handshake {
 public:
  explicit Handshake(const RouteLimits &limits) : limits_(limits) {}

  // A message of the client was sent. method: the token of a request's method.
  void on_sent(std::uint32_t kind, std::uint64_t exchange, std::string_view method,
               std::string_view text);
  enum class Answer : std::uint8_t { of_client, of_repetition, repetition_refused };
  // Whose request the endpoint has answered; only answers of_client are for the client.
  Answer on_answer(std::uint64_t exchange, std::string_view text);
  // The connection is lost: no answer comes.
  void on_lost() noexcept { sent_exchange_ = repeated_ = 0; }

  // The endpoint has accepted a handshake.
  bool accepted() const noexcept { return !initialize_.empty(); }
  void repeat(Ends &ends, std::uint64_t exchange);

 private:
  const RouteLimits &limits_;
  std::uint64_t sent_exchange_ = 0;  // of sent_, until its answer
  std::string sent_;                 // the client's initialize
  std::string initialize_;           // one that was answered with a result
  bool initialized_ = false;         // the client has confirmed it
  std::uint64_t repeated_ = 0;       // exchange of the repetition, until its answer
};

}  // namespace bulkhead::pipe
