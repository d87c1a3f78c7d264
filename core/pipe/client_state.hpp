// What the client has set up in its session besides the handshake: its log level, its
// subscriptions, and the lists that it has read. A new endpoint knows nothing of them: the requests
// are repeated on a new connection, and the client is told that its lists may have changed.
//
// Owner: Route. Limits: max_subscriptions requests of max_subscription_bytes together; further ones
// are not repeated.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "pipe/backlog.hpp"
#include "pipe/ends.hpp"
#include "pipe/route_limits.hpp"

namespace bulkhead::pipe {

class ClientState {
 public:
  explicit ClientState(const RouteLimits &limits) : limits_(limits) {}

  // A request of the client was sent. method: its token.
  void on_sent(std::string_view method, std::string_view text);
  // A new handshake begins a new session.
  void clear();

  // Sends the requests on a new connection, under exchanges of their own.
  void repeat(Ends &ends, Backlog &backlog);
  // True if this is the answer to a repeated request, which is not for the client.
  bool is_repetition(std::uint64_t exchange) noexcept { return repeated_.erase(exchange) > 0; }
  // Tells the client that the lists it has read may have changed.
  void announce_lists(Ends &ends) const;
  // The connection is lost: no answer comes.
  void on_lost() noexcept { repeated_.clear(); }

 private:
  enum List : std::uint8_t { tools, resources, prompts };

  void subscribe(std::string_view text);
  void unsubscribe(std::string_view text);

  const RouteLimits &limits_;
  std::string set_level_;                         // the last request
  std::map<std::string, std::string> subscribe_;  // by the token of the URI
  std::size_t subscribe_bytes_ = 0;
  std::array<bool, 3> read_{};  // by List
  std::set<std::uint64_t> repeated_;
};

}  // namespace bulkhead::pipe
