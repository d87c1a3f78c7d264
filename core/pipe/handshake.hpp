// The client's handshake. It is repeated on a new connection because a new endpoint does not know
// the client. Owner: Route. Limit: max_handshake_bytes; larger handshakes are not repeated.
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

  // Called when a client message was sent. `method` is the method's token if the message is a
  // request.
  void on_sent(std::uint32_t kind, std::uint64_t exchange, std::string_view method,
               std::string_view text);
  enum class Answer : std::uint8_t { of_client, of_repetition, repetition_refused };
  // Determines who sent the request that the endpoint has answered. Only answers of type of_client
  // are forwarded to the client.
  Answer on_answer(std::uint64_t exchange, std::string_view text);
  // Called when the connection is lost. Pending answers will then not arrive.
  void on_lost() noexcept { sent_exchange_ = repeated_ = 0; }

  // Returns true if the endpoint has accepted a handshake.
  bool accepted() const noexcept { return !initialize_.empty(); }
  void repeat(Ends &ends, std::uint64_t exchange);

 private:
  const RouteLimits &limits_;
  std::uint64_t sent_exchange_ = 0;  // the exchange of sent_, until it is answered
  std::string sent_;                 // the client's initialize
  std::string initialize_;           // the last initialize that was answered with a result
  bool initialized_ = false;         // whether the client has confirmed initialize_
  std::uint64_t repeated_ = 0;       // the exchange of the repetition, until it is answered
};

}  // namespace bulkhead::pipe
