// Session state that the client has set after the handshake: its log level, its subscriptions, and
// the lists that it has read. A new endpoint does not have this state. Therefore, the requests are
// repeated on a new connection, and the client receives list_changed for the lists that it has
// read.
//
// Owner: Route. Limits: max_subscriptions requests with a total of max_subscription_bytes; requests
// above the limits are not repeated.
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

  // Records a client request that was sent. `method` is the method's token.
  void on_sent(std::string_view method, std::string_view text);
  // Called when a new handshake begins a new session.
  void clear();

  // Sends the recorded requests on a new connection, with new exchange numbers.
  void repeat(Ends &ends, Backlog &backlog);
  // Returns true if the exchange is a repeated request. Its answer is not forwarded to the client.
  bool is_repetition(std::uint64_t exchange) noexcept { return repeated_.erase(exchange) > 0; }
  // Sends list_changed to the client for each type of list that it has read.
  void announce_lists(Ends &ends) const;
  // Called when the connection is lost. Pending repeated requests will then not be answered.
  void on_lost() noexcept { repeated_.clear(); }

 private:
  enum List : std::uint8_t { tools, resources, prompts };

  void subscribe(std::string_view text);
  void unsubscribe(std::string_view text);

  const RouteLimits &limits_;
  std::string set_level_;                         // the last request
  std::map<std::string, std::string> subscribe_;  // keyed by the URI's token
  std::size_t subscribe_bytes_ = 0;
  std::array<bool, 3> read_{};  // indexed by List
  std::set<std::uint64_t> repeated_;
};

}  // namespace bulkhead::pipe
