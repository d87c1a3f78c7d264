// How calls end: with an answer, an error or a record, or because their client or server has gone.
// Every call ends exactly once, in finish().
//
// Thread: I/O thread. Owned by the Router.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <utility>
#include <vector>

#include "reactor/reactor.hpp"
#include "route/approval_desk.hpp"
#include "route/asks.hpp"
#include "route/attribution.hpp"
#include "route/call.hpp"
#include "route/call_loop.hpp"
#include "route/call_parking.hpp"
#include "route/client_answers.hpp"
#include "route/draining.hpp"
#include "route/exchange.hpp"
#include "route/recorder.hpp"
#include "route/subscriptions.hpp"

namespace bulkhead {

class CallEnds {
 public:
  struct Needs {
    Reactor &reactor;
    CallTable &calls;
    CallLoop &loop;
    ExchangeTable &exchanges;
    const CallParking &parking;
    ApprovalDesk &desk;
    Recorder &recorder;
    ClientAnswers &answers;
    Asks &asks;
    const Attribution &attribution;
    Subscriptions &subscriptions;
    Draining &draining;
    // The policy's answer under this number is no longer awaited; late: it timed out.
    std::function<void(std::uint64_t number, bool late)> on_unanswered;
  };
  explicit CallEnds(Needs needs) : needs_(std::move(needs)) {}

  // ---- events; queued if a step runs ----
  // The client has cancelled the call with this notification, which its server gets.
  void cancel(Call &call, const Message &notification);
  // The client has gone: the servers are notified, so that they can stop. When no step runs, the
  // session has no calls afterwards.
  void end_session(Session &session);
  // The call cannot finish: its server was removed. The client gets the text, and the server is
  // notified.
  void end_drained(Call &call, std::string_view text);
  // The gateway stops: every call is answered with an error that says whether it may have run.
  void end_all();
  // Handles such an event that was queued.
  void handle(Call &call, CallEvent event);

  // ---- in steps ----
  // Ends the exchange of the call: its lane has nothing more to do with it.
  void detach(Call &call);
  // detach() of a call whose server is done; the lane sends its next call.
  void leave_lane(Call &call);
  // Records the end and frees the call after the step. The client gets nothing here.
  void finish(Call &call, std::uint32_t outcome, std::uint64_t bytes_out, std::string_view rule,
              std::string_view error, std::string_view response = {});
  // The record alone, once: before the answer, where records go first.
  void record(Call &call, const Recorder::End &end);
  // finish() with an error for the client.
  void fail(Call &call, std::int32_t error_code, std::string_view text, std::uint32_t outcome);
  // fail(), and the server is notified that the call was cancelled.
  void fail_and_retract(Call &call, std::int32_t error_code, std::string_view text,
                        std::uint32_t outcome);

  // Ends an exchange of a lane's own.
  void drop(Exchange &exchange);

  std::uint32_t in_flight() const noexcept { return needs_.calls.size(); }
  // A call that waits for more than a person is in flight.
  bool busy() const;
  // Calls that are parked before they reach this lane.
  std::vector<std::uint64_t> waiting_for(const Lane &lane) const;

 private:
  void end_cancelled(Call &call, const Message &notification);
  void end_gone(Call &call);
  void end(Call &call, const CallFailure &failure);
  void release(Call &call);
  void free(Call &call);

  const Needs needs_;
};

}  // namespace bulkhead
