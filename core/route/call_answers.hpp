// Handles responses from servers to calls. If a policy reads results, it evaluates each response
// before it is forwarded.
//
// Owner: the Router. Runs on the reactor thread. A call may have ended when a function returns; see
// CallLoop.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "reactor/reactor.hpp"
#include "route/asks.hpp"
#include "route/call.hpp"
#include "route/call_ends.hpp"
#include "route/call_loop.hpp"
#include "route/call_parking.hpp"
#include "route/client_answers.hpp"
#include "route/counters.hpp"
#include "route/duplicate_checks.hpp"
#include "route/gate.hpp"
#include "route/input_rounds.hpp"
#include "route/judge.hpp"
#include "route/message.hpp"
#include "route/protocol.hpp"
#include "route/recorder.hpp"
#include "route/request_states.hpp"
#include "route/task_answers.hpp"
#include "route/task_rounds.hpp"

namespace bulkhead {

class Splice;

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
    InputRounds &rounds;
    // Called when the policy decision for request `number` is no longer needed. `late` is true if
    // the policy request timed out.
    std::function<void(std::uint64_t number, bool late)> on_unanswered;
    // Called when a call has ended, because the gateway may now be idle.
    std::function<void()> on_ended;
    // Seals requestState values from servers before they are sent to clients of the same protocol
    // generation. Null if there are no such clients.
    const RequestStates *states = nullptr;
    std::uint64_t state_ms = 0;          // how long such a state is valid
    const TaskAnswers *tasks = nullptr;  // null: task ids are not replaced
    TaskRounds *task_rounds = nullptr;   // null: there are no calls with a TaskBridge
  };
  explicit CallAnswers(Needs needs) : needs_(std::move(needs)) {}

  // ---- events; queued while a step runs. The call has left its lane when they return ----
  // Handles a result or an error from the call's server. `owned` contains the bytes of the answer
  // if they may be moved.
  void answered(Call &call, const Message &answer, std::string *owned = nullptr);
  // Fails a call because of a problem with its server. If a policy reads results, it evaluates the
  // text like an error from the server, because the server may have written part of it.
  void fail_by_server(Call &call, std::int32_t error_code, std::string_view text,
                      std::uint32_t outcome);
  // Handles a queued event.
  void handle(Call &call, CallEvent event);

  // ---- called inside steps ----
  // Called when the pool has checked a parked answer for duplicate members.
  void checked(Call &call, bool duplicates);
  // Called when the policy has decided about a parked response.
  void decided(Call &call, const Gate::Decision &decision);
  void refuse(Call &call, const Gate::Decision &decision,
              std::int32_t error_code = code::invalid_request);
  // Ends a call that its server cannot finish. A tool call gets a result with isError, so that the
  // client's model sees the text.
  void fail_as_result(Call &call, std::string_view text);

 private:
  struct Passed;

  void take(Call &call, const Message &answer);
  void take_final(Call &call, const Message &answer);
  void fail(Call &call, const CallFailure &failure);
  bool passes_policy(Call &call, const Message &answer);
  bool park(Call &call, const Message &answer, Stage stage);
  void check_later(Call &call, const Message &answer);
  void pass(Call &call, const Message &answer);
  bool replaced_error(Call &call, const Message &answer);
  void send_result(Call &call, std::string_view result);
  void filter(Call &call, const Message &answer, const Gate::Decision &decision);
  bool asked_for_urls(Call &call, const Message &answer);
  std::optional<TaskAnswers::Edits> task_edits(Call &call, std::string_view result);
  bool forwards_input(Call &call, const Message &answer, Splice *splice, std::string *room);
  void send(Call &call, const Passed &passed);

  const Needs needs_;
};

}  // namespace bulkhead
