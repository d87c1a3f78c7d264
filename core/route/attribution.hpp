// Determines which client a message from a server belongs to. Over HTTP, the stream on which the
// message arrives identifies the call and thus the client. On the lane of a single session, every
// message belongs to its client. On any other pipe, the message belongs to the client with
// in-flight calls at the server, if there is only one such client and the server cannot still be
// working on a cancelled call of another client. Otherwise, the message is not attributed to any
// client.
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
  // A server may continue to work on a call that was cancelled or has timed out. Such calls are
  // remembered for memory_ns, so that requests that the server makes for them do not reach other
  // clients. If a lane has more than max_given_up such calls, only the client of the oldest ones is
  // remembered; see Lane::forgotten.
  static constexpr std::uint64_t memory_ns = 60'000'000'000u;
  static constexpr std::size_t max_given_up = 64;

  Attribution(Sessions &sessions, ExchangeTable &exchanges, Reactor &reactor)
      : sessions_(sessions), exchanges_(exchanges), reactor_(reactor) {}

  // Returns the client for which the server is working, or null if it is not known. `hint` is the
  // exchange of the stream on which the message arrived, or 0 if unknown. *call is set to the call
  // that caused the message. If several calls of the client may have caused it, *call is the newest
  // one whose client can be asked now, or the newest one. If no call is known, *call is null.
  Session *client_of(Lane &lane, std::uint64_t hint, Call **call) const;
  // Returns the client of the task to which a message is related. Returns null if the client's
  // session has ended, if the client has no session and no call about the task in flight, or if the
  // message has arrived on a stream of another client. *call is set to the client's call that waits
  // for the task's result (tasks/result), or to null if the client has no such call in flight.
  Session *client_of_task(Lane &lane, std::uint64_t hint, const TaskNote &task, Call **call) const;
  // Returns the ids of the client's other in-flight calls on the same lane. On a pipe, any of them
  // may have caused a request from the server. If `about_task` is true, only calls that wait for
  // the result of the same task.
  static std::vector<std::uint64_t> other_calls(const Call &call, bool about_task = false);

  // Returns true if both are the same session, or if both are sessionless requests that claim the
  // same client name and arrived on the same connection or, without a connection, have the same
  // transport and principal.
  static bool same_client(const Session &a, const Session &b);

  // Called when a call has ended before its server has responded. The server may still be working
  // on the call.
  void given_up(Lane &lane, std::uint64_t exchange, const Session &session) const;
  // Called when a response arrives for an exchange that has already been cancelled or has timed
  // out.
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
