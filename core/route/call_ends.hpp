// Ends calls that were answered or have failed, or whose client or server is gone. Every call ends
// exactly once, in finish().
//
// Owner: the Router. Runs on the reactor thread.
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
    // Called when the policy decision for request `number` is no longer needed, or when a call for
    // which the policy has required approval has ended. `late` is true if the policy request timed
    // out.
    std::function<void(std::uint64_t number, bool late)> on_unanswered;
    // Cancels a task that no client has received. May be empty.
    std::function<void(const CreatedTask &)> cancel_task{};
  };
  explicit CallEnds(Needs needs) : needs_(std::move(needs)) {}

  // ---- events; queued while a step runs ----
  // Called when the client has cancelled the call. If the call was sent, the client's reason is
  // forwarded to the server.
  void cancel(Call &call, const Message &notification);
  // Called when the client is gone. The servers are notified so that they can stop. Unless a step
  // is running, the session has no calls when this function returns.
  void end_session(Session &session);
  // Called when the call cannot finish because its server was removed. The client receives `text`,
  // and the server is notified.
  void end_drained(Call &call, std::string_view text);
  // Called when the client has not answered a question in time. The client receives `text`, and the
  // server is notified.
  void end_unanswered(Call &call, std::string_view text);
  // Called when the call has to make room for another one. Like end_unanswered(), but the call is
  // recorded as cancelled.
  void end_evicted(Call &call, std::string_view text);
  // Called when the gateway is stopping. Every call is answered with an error that states whether
  // it may have run.
  void end_all();
  // Handles a queued event: CallEvent::cancelled, gone or ended.
  void handle(Call &call, CallEvent event);

  // ---- called inside steps ----
  // Ends the call's exchange and releases it from its lane.
  void detach(Call &call);
  // Calls detach() for a call that its server has completed. The lane then sends its next call.
  void leave_lane(Call &call);
  // Records how the call ended, and frees it after the step. Sends nothing to the client.
  void finish(Call &call, std::uint32_t outcome, std::uint64_t bytes_out, std::string_view rule,
              std::string_view error, std::string_view response = {});
  // Records how the call ended, but does not free it. If the call has already been recorded, does
  // nothing. Called before the response is sent if records must be written first.
  void record(Call &call, const Recorder::End &end);
  // Calls finish(), then sends an error to the client.
  void fail(Call &call, std::int32_t error_code, std::string_view text, std::uint32_t outcome);
  // Calls fail(). If the call was on a lane, also removes it from the lane's queue or notifies the
  // server that the call was cancelled.
  void fail_and_retract(Call &call, const CallFailure &failure);

  // Ends a call that its server cannot finish. A tool call gets a result with isError instead of an
  // error, so that the client's model sees the text.
  void fail_as_result(Call &call, std::string_view text);

  // Ends an exchange that belongs to its lane rather than to a call.
  void drop(Exchange &exchange);

  std::uint32_t in_flight() const noexcept { return needs_.calls.size(); }
  // Returns true if any calls are in flight. Calls that only wait for a human approver, or for
  // their client to repeat its request, do not count.
  bool busy() const;
  // Returns the ids of the calls that are not at this lane now, but are parked for it or may return
  // to it.
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
