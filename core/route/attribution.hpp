// Whose call a server is working for. Over HTTP the stream says which call that is. On one pipe it
// is the client that has calls in flight there, if that is exactly one; there is no guessing.
// Owner: the Router. Thread: [io].
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
  // A server may continue with a call that its client has cancelled: such calls are remembered for
  // so long, and so many for each lane, so that the server's requests reach no other client.
  static constexpr std::uint64_t memory_ns = 60'000'000'000u;
  static constexpr std::size_t max_given_up = 64;

  Attribution(Sessions &sessions, ExchangeTable &exchanges, Reactor &reactor)
      : sessions_(sessions), exchanges_(exchanges), reactor_(reactor) {}

  // The client that the lane's present work belongs to; null: that is not one client. `hint`: the
  // exchange on whose stream a message came; 0: the wire does not say. *call: the call, or the
  // newest of those that it may be; null: none.
  Session *client_of(Lane &lane, std::uint64_t hint, Call **call) const;
  // The client's other calls that the server is working on: on one pipe any of them may have caused
  // what it asks. Those that come later cannot.
  static std::vector<std::uint64_t> other_calls(const Call &call);

  // The exchange has ended for its client, and its server does not know that yet.
  void given_up(Lane &lane, std::uint64_t exchange, const Session &session) const;
  // The server has answered what was given up.
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
