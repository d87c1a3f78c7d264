// Attribution of server messages to clients: for whose call a server is working. Over HTTP the
// stream identifies the call. On a pipe it is the client that has calls in flight there, if exactly
// one has; otherwise the message is attributed to no client.
//
// Thread: I/O thread. Owned by the Router.
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
  // memory_ns, at most max_given_up for each lane, so that their requests reach no other client.
  static constexpr std::uint64_t memory_ns = 60'000'000'000u;
  static constexpr std::size_t max_given_up = 64;

  Attribution(Sessions &sessions, ExchangeTable &exchanges, Reactor &reactor)
      : sessions_(sessions), exchanges_(exchanges), reactor_(reactor) {}

  // The client for which the lane works; null: not exactly one. `hint`: the exchange of the stream
  // on which a message arrived; 0: unknown. *call: the call, or the newest possible one; null:
  // none.
  Session *client_of(Lane &lane, std::uint64_t hint, Call **call) const;
  // The client's other calls at the server: on a pipe, any of them may have caused a request that
  // the server has sent so far.
  static std::vector<std::uint64_t> other_calls(const Call &call);

  // The exchange has ended for its client; its server may still work on it.
  void given_up(Lane &lane, std::uint64_t exchange, const Session &session) const;
  // The server has answered an exchange that had ended.
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
