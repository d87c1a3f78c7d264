// Attributes server messages to clients by determining for whose call a server is working. Over
// HTTP, the stream identifies the call. On a pipe, the message belongs to the only client with
// in-flight calls there. If several clients have in-flight calls, the message is not attributed.
//
// Owner: the Router. Runs on the reactor thread.
#pragma once

#include <cstdint>
#include <vector>

#include "reactor/reactor.hpp"
#include "route/exchange.hpp"
#include "route/lane.hpp"
#include "route/sessions.hpp"

namespace bulkhead {

class Attribution {
 public:
  // A server may continue a call that its client has cancelled. Such calls are remembered for
  // memory_ns, at most max_given_up per lane, so that their requests do not reach another client.
  static constexpr std::uint64_t memory_ns = 60'000'000'000u;
  static constexpr std::size_t max_given_up = 64;

  Attribution(Sessions &sessions, ExchangeTable &exchanges, Reactor &reactor)
      : sessions_(sessions), exchanges_(exchanges), reactor_(reactor) {}

  // Returns the client for which the lane is working, or null if there is not exactly one. `hint`
  // is the exchange of the stream on which a message arrived, or 0 if unknown. *call is set to the
  // call if it is known, otherwise to the newest call that may have caused the message, or to null.
  Session *client_of(Lane &lane, std::uint64_t hint, Call **call) const;
  // Returns the client's other calls at the server. On a pipe, each of them may have caused a
  // request from the server.
  static std::vector<std::uint64_t> other_calls(const Call &call);

  // Called when the exchange has ended for its client but its server may be working on it.
  void given_up(Lane &lane, std::uint64_t exchange, const Session &session) const;
  // Called when the server has answered an exchange that has already ended.
  static void finished(Lane &lane, std::uint64_t exchange);
  static void connection_lost(Lane &lane);

 private:
  bool may_be_anothers(Lane &lane, const Session &session) const;
  void forget_oldest(Lane &lane) const;

  Sessions &sessions_;
  ExchangeTable &exchanges_;
  Reactor &reactor_;
};

}  // namespace bulkhead
