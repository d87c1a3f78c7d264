// Stores the client's handshake and repeats it on a new connection, because a new endpoint does not
// know the client. A handshake that exceeds max_handshake_bytes is not repeated. Owned by Route.
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

  // Must be called when a message from the client has been sent. If it is a request, `method` is
  // its method name as a JSON token.
  void on_sent(std::uint32_t kind, std::uint64_t exchange, std::string_view method,
               std::string_view text);
  enum class Answer : std::uint8_t { of_client, of_repetition, repetition_refused };
  // Returns what a response belongs to: a request from the client, or the repeated handshake
  // (accepted or refused). Only responses of_client are forwarded to the client.
  Answer on_answer(std::uint64_t exchange, std::string_view text);
  // Must be called after the connection is lost. Forgets the initialize requests that were sent on
  // it, because the endpoint will not respond to them.
  void on_lost() noexcept { sent_exchange_ = repeated_ = 0; }

  // Returns true if the endpoint has accepted a handshake.
  bool accepted() const noexcept { return !initialize_.empty(); }
  void repeat(Ends &ends, std::uint64_t exchange);

 private:
  const RouteLimits &limits_;
  std::uint64_t sent_exchange_ = 0;  // exchange of sent_; 0 if answered
  std::string sent_;                 // the client's last initialize request
  std::string initialize_;           // the last initialize request that was answered with a result
  bool initialized_ = false;         // the client has confirmed initialize_
  std::uint64_t repeated_ = 0;       // exchange of the repeated initialize request; 0 if answered
};

}  // namespace bulkhead::pipe
