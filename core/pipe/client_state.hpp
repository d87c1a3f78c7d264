// Restores a client's session state on a new connection, whose endpoint does not know it: the log
// level, the subscriptions, and the lists that the client has read. The requests that set the log
// level and the subscriptions are sent again. For each list that the client has read, the client
// receives list_changed.
//
// At most max_subscriptions requests with max_subscription_bytes in total are stored; requests
// beyond these limits are not sent again. Owned by Route.
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

  // Stores a request that was sent on behalf of the client. `method` is the method name as a JSON
  // token.
  void on_sent(std::string_view method, std::string_view text);
  // Called when a new handshake starts a new session.
  void clear();

  // Sends the stored requests on a new connection with new exchange numbers.
  void repeat(Ends &ends, Backlog &backlog);
  // Returns true, once, if the exchange belongs to a repeated request. Its response must not be
  // forwarded to the client.
  bool is_repetition(std::uint64_t exchange) noexcept { return repeated_.erase(exchange) > 0; }
  // Sends list_changed to the client for each list that it has read.
  void announce_lists(Ends &ends) const;
  // Must be called after the connection is lost. Repeated requests that are still unanswered will
  // not receive a response.
  void on_lost() noexcept { repeated_.clear(); }

 private:
  enum List : std::uint8_t { tools, resources, prompts };

  void subscribe(std::string_view text);
  void unsubscribe(std::string_view text);

  const RouteLimits &limits_;
  std::string set_level_;                         // the most recent request
  std::map<std::string, std::string> subscribe_;  // keyed by the token of the URI
  std::size_t subscribe_bytes_ = 0;
  std::array<bool, 3> read_{};  // indexed by List
  std::set<std::uint64_t> repeated_;
};

}  // namespace bulkhead::pipe
