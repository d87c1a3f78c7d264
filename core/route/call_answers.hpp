// Handles responses from servers to calls. If a policy reads results, it evaluates each response
// before it is forwarded.
//
// Owner: the Router. Runs on the reactor thread. A call may have ended when a function returns; see
// CallLoop.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "reactor/reactor.hpp"
#include "route/answer_bridge.hpp"
#include "route/asks.hpp"
#include "route/call.hpp"
#include "route/call_ends.hpp"
#include "route/call_loop.hpp"
#include "route/call_parking.hpp"
#include "route/client_answers.hpp"
#include "route/counters.hpp"
#include "route/duplicate_checks.hpp"
#include "route/gate.hpp"
#include "route/judge.hpp"
#include "route/message.hpp"
#include "route/protocol.hpp"
#include "route/recorder.hpp"

namespace bulkhead {

class CallAnswers {
 public:
  struct Needs {
    Reactor &reactor;
    RouterCounters &counters;
    CallLoop &loop;
    const Gate &gate;
    const Judge &judge;
    DuplicateChecks &checks;  // passes its results to checked()
    const CallParking &parking;
    const Recorder &recorder;
    ClientAnswers &answers;
    Asks &asks;
    CallEnds &ends;
    const AnswerBridge &bridge;
    // Called when the policy decision for request `number` is no longer needed. `late` is true if
    // the policy request timed out.
    std::function<void(std::uint64_t number, bool late)> on_unanswered;
    // Called when a response has been sent and its call has ended: the gateway may now be idle.
    std::function<void()> on_ended;
  };
  explicit CallAnswers(Needs needs) : needs_(std::move(needs)) {}

  // ---- events; queued while a step runs. The call has left its lane afterwards ----
  // Handles a result or an error from the call's server. `owned` contains the bytes of the answer
  // if they may be moved; otherwise, it is null.
  void answered(Call &call, const Message &answer, std::string *owned = nullptr);
  // Fails a call because of a problem with its server. If the call is on a lane and a policy reads
  // results, the policy evaluates the text like an error from the server, because the server may
  // have written part of it.
  void fail_by_server(Call &call, std::int32_t error_code, std::string_view text,
                      std::uint32_t outcome);
  // Handles a queued event: CallEvent::answered or CallEvent::failed.
  void handle(Call &call, CallEvent event);

  // ---- called inside steps ----
  // Called when the pool has checked a parked answer for duplicate members.
  void checked(Call &call, bool duplicates);
  // Called when the policy has decided about a parked response.
  void decided(Call &call, const Gate::Decision &decision);
  void refuse(Call &call, const Gate::Decision &decision,
              std::int32_t error_code = code::invalid_request);

 private:
  void take(Call &call, const Message &answer);
  void judge(Call &call, const Message &answer);
  void fail(Call &call, const CallFailure &failure);
  bool passes_policy(Call &call, const Message &answer);
  bool park(Call &call, const Message &answer, Stage stage);
  void check_later(Call &call, const Message &answer);
  void pass(Call &call, const Message &answer);
  void filter(Call &call, const Message &answer, const Gate::Decision &decision);
  void send(Call &call, AnswerBridge::Reply &reply, std::string_view rule, std::string_view error);

  const Needs needs_;
};

}  // namespace bulkhead
