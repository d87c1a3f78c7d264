// The answers of servers to calls: evaluated where a policy reads results, and passed on.
//
// Thread: I/O thread. Owned by the Router. A call may have ended when a function returns.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <utility>

#include "reactor/reactor.hpp"
#include "route/asks.hpp"
#include "route/call.hpp"
#include "route/call_ends.hpp"
#include "route/call_parking.hpp"
#include "route/client_answers.hpp"
#include "route/counters.hpp"
#include "route/draining.hpp"
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
    CallTable &calls;
    const Gate &gate;
    const Judge &judge;
    DuplicateChecks &checks;  // whose results come to checked()
    const CallParking &parking;
    const Recorder &recorder;
    ClientAnswers &answers;
    Asks &asks;
    Draining &draining;
    CallEnds &ends;
    // The policy's answer under this number is no longer awaited; late: it timed out.
    std::function<void(std::uint64_t number, bool late)> on_unanswered;
    // A call has ended: the gateway may be idle.
    std::function<void()> on_ended;
  };
  explicit CallAnswers(Needs needs) : needs_(std::move(needs)) {}

  // A result or an error of the call's server.
  void answered(Call &call, const Message &answer);
  // Fails a call at its server with a text that the server may have written in part: it is
  // evaluated like an error that the server sent.
  void fail_by_server(Call &call, std::int32_t error_code, std::string_view text,
                      std::uint32_t outcome);

  // The pool has checked a parked answer for duplicate members.
  void checked(Call &call, bool duplicates);
  // The policy has decided about a parked answer.
  void decided(Call &call, const Gate::Decision &decision);
  void refuse(Call &call, const Gate::Decision &decision,
              std::int32_t error_code = code::invalid_request);

 private:
  struct Passed;

  bool passes_policy(Call &call, const Message &answer);
  bool park(Call &call, const Message &answer, Stage stage);
  void check_later(Call &call, const Message &answer);
  void pass(Call &call, const Message &answer);
  void filter(Call &call, const Message &answer, const Gate::Decision &decision);
  void send(Call &call, const Passed &passed);

  const Needs needs_;
};

}  // namespace bulkhead
