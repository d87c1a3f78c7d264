// The request pipeline. Every request to a server goes through the same steps in the same order:
//
//  pins -> judge -> (approval) -> (confirm) -> record -> send -> the server -> judge the response
//
// If a step has to wait, it parks the call with its message (Call::parked), and no further step is
// run. The event that the call waits for resumes it. After a wait, `confirm` compares the tool's
// current definition with the approved definition. If the definition or the rules have changed
// during the wait, the call is also evaluated again. A human approval does not cover a changed
// definition.
//
//  stage             waits for                          time-out (stage.hpp)
//  awaiting_list     the lists of servers; no call yet  limits.first_list_wait_ms
//  checking          the pool (duplicate members)       limits.policy_timeout_ms + 1 ms per 8 KiB
//  deciding          the policy                         limits.policy_timeout_ms + 1 ms per 8 KiB
//  approving         a human approver                   limits.approval_timeout_ms
//  recording         the intent record                  BH_TELEMETRY_COMMIT_MS
//  queued            its turn in a lane                 the server's time-out
//  at_server         the server                         the server's time-out
//  suspended         the client, asked by the server    limits.ask_timeout_ms for each request
//  awaiting_repeat   the client, to repeat its request  limits.ask_timeout_ms
//  answer_checking   the pool                           limits.policy_timeout_ms + 1 ms per 8 KiB
//  answer_deciding   the policy                         limits.policy_timeout_ms + 1 ms per 8 KiB
//  asking            the client's input (InputRounds)   longer than limits.ask_timeout_ms
//
// A call whose `checking` or `answer_checking` turns into `deciding` or `answer_deciding` keeps its
// deadline.
//
// To add a stage, add a value to Stage, its time-out to stage_time_ms() and its handler to
// take_time_out(). For the event that ends the stage, add a value to CallEvent and its handler to
// handle(). These switches have no default, so the compiler reports missing cases. ClientInputs
// moves calls between `suspended` and `awaiting_repeat`.
//
// Steps do not nest: an event that arrives while a step runs is queued on its call
// (call_events.hpp) and handled after the step; see CallLoop. CallParking stores waiting calls,
// CallAnswers handles the server's response, and CallEnds ends calls.
//
// Owner: the Router. Runs on the reactor thread.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "profile/profile.hpp"
#include "route/approval_desk.hpp"
#include "route/asks.hpp"
#include "route/call.hpp"
#include "route/call_answers.hpp"
#include "route/call_ends.hpp"
#include "route/call_loop.hpp"
#include "route/call_parking.hpp"
#include "route/client_answers.hpp"
#include "route/counters.hpp"
#include "route/deadlines.hpp"
#include "route/draining.hpp"
#include "route/duplicate_checks.hpp"
#include "route/exchange.hpp"
#include "route/gate.hpp"
#include "route/input_rounds.hpp"
#include "route/judge.hpp"
#include "route/recorder.hpp"
#include "route/subscriptions.hpp"
#include "route/target.hpp"

namespace bulkhead {

class Calls final : public Asks::Forms, public CallLoop::Handler {
 public:
  // If the policy changes its rules during each evaluation, a call is evaluated at most this many
  // times without waiting. After that, it is refused. A call is also refused if the definition of
  // its tool changes more often than this while the call waits.
  static constexpr std::uint32_t max_rounds = 8;

  struct Needs {
    const Limits &limits;
    RouterCounters &counters;
    CallTable &calls;
    CallLoop &loop;
    ExchangeTable &exchanges;
    Deadlines &deadlines;
    const Gate &gate;
    const Judge &judge;
    DuplicateChecks &checks;  // passes its results to checked()
    const CallParking &parking;
    ApprovalDesk &desk;
    Recorder &recorder;
    ClientAnswers &answers;
    Subscriptions &subscriptions;
    const Draining &draining;
    CallAnswers &call_answers;
    CallEnds &ends;
    InputRounds &rounds;
    std::function<void(std::int32_t level, std::string_view text)> log;
    // Called when the policy decision for request `number` is no longer needed. `late` is true if
    // the policy request timed out.
    std::function<void(std::uint64_t number, bool late)> on_unanswered;
  };
  explicit Calls(Needs needs) : needs_(std::move(needs)), kept_(needs_.limits) {}

  // Starts the call. The request is answered immediately or later. If a step is running, the call
  // starts after that step.
  void begin(Session &session, Incoming &request, CallInHand &hand);
  // Called when the gateway is stopping: running calls continue, and new calls are refused.
  void refuse_new_calls() noexcept { stopping_ = true; }

  // ---- events that calls wait for; queued while a step runs ----
  // Called when the rules were replaced or need other data. Waiting calls are evaluated again
  // before they are sent.
  void rules_changed() noexcept { ++rules_; }
  // Called when the policy has decided about a call or its answer.
  void decided(std::uint64_t call, const Gate::Decision &decision);
  // Called when the pool has checked a call or its answer for duplicate members.
  void checked(std::uint64_t call, bool duplicates);
  void approval_given(std::uint64_t call, bool allow, ApprovalSurface surface,
                      const ApprovalScope &scope);
  // Receives a human approver's answer, or revokes a grant. Returns BH_E_NOT_FOUND if there is no
  // such approval request or grant, and BH_E_INVALID if the scope is unknown or not valid for the
  // call.
  Result<void> answer_approval(const ApprovalAnswer &answer);
  // Receives the client's answer to the approval form.
  void form_answered(std::uint64_t call, const Message &answer) override;
  // Called when the client cannot be asked or can no longer answer. Other approvers may still
  // answer; if there are none, the call is refused.
  void form_lost(std::uint64_t call) override;
  void input_answered(std::uint64_t call, std::uint32_t number, const Message &answer) override {
    needs_.rounds.answered(call, number, answer);
  }
  // Sends a call again after its client has given the input that the server asked for, or after a
  // pause. Must be called inside a step.
  void repeat(Call &call) { resume(call, Step::confirm); }
  // Called when the lists of a server have changed. Approval requests about tools whose definition
  // has changed are withdrawn, and their calls are refused.
  void definitions_changed(const Lane &lane);
  // Called when the client has closed its input. Calls that wait for approval are refused, because
  // they must not run unobserved.
  void withdraw_questions(const Session &session);
  void records_committed();
  // Called when the lane can send a queued call. Returns false if the lane must not send it. This
  // happens if the call is about to end, or if the rules or the definition of its tool have
  // changed. In the second case, the call has left the lane and is evaluated again.
  bool may_be_sent(Call &call);
  // Removes a parked call from its lane, evaluates it again after the current step, and sends it.
  // Call this function only if the server has not run the call.
  void send_again(Call &call);
  void timed_out(Call &call);
  // CallLoop::Handler
  void handle_events(Call &call) override;

 private:
  enum class Step : std::uint8_t { pins, judge, confirm, record, send };
  using Next = std::optional<Step>;  // nullopt if the call waits or has ended

  void advance(Call &call, CallInHand &hand, Next next);
  Next run(Call &call, CallInHand &hand, Step step);
  bool is_outdated(Call &call, Target *target);
  bool is_outdated_in_pool(Call &call);
  void refuse_redefined(Call &call, const Target &target, std::string_view rule_reason);
  Next check_pins(Call &call, const CallInHand &hand, Step then);
  Next judge(Call &call, CallInHand &hand);
  Next apply(Call &call, CallInHand &hand, const Gate::Decision &decision);
  Next ask_person(Call &call, const CallInHand &hand, const Gate::Decision &decision);
  Next confirm(Call &call, const CallInHand &hand);
  Next record(Call &call, const CallInHand &hand);
  bool has_unjudged_inputs(const Call &call, const CallInHand &hand) const;
  Next send(Call &call, const CallInHand &hand);
  bool continues_subscription(Call &call, const CallInHand &hand);

  Call *open(Session &session, Incoming &request, const Target &target);
  bool park(Call &call, const CallInHand &hand, Stage stage);
  void check_later(Call &call, const CallInHand &hand);

  // Event handlers. They are called between steps, inside a CallLoop::Run.
  void handle(Call &call, CallEvent event);
  void resume(Call &call, Step step);
  void take_decision(Call &call, const Gate::Decision &decision);
  void take_checked(Call &call, bool duplicates);
  void call_decided(Call &call, const Gate::Decision &decision);
  void take_approval(Call &call, bool allow, ApprovalSurface surface, const ApprovalScope &scope);
  void withdraw(std::uint64_t call, std::string_view why);
  void take_withdrawal(Call &call, std::string_view why);
  void take_time_out(Call &call);
  static std::uint32_t flags_of(Call &call) noexcept;
  void policy_timed_out(Call &call, bool about_answer);
  void approval_expired(Call &call);
  void server_timed_out(Call &call);
  void refuse(Call &call, const Gate::Decision &decision);
  void refuse_unrecorded(Call &call, std::string_view text);

  CallLoop &loop() noexcept { return needs_.loop; }

  const Needs needs_;
  KeptBytes kept_;
  std::deque<std::pair<std::uint64_t, std::uint64_t>> intents_;  // barrier of the record, call
  std::uint32_t rules_ = 1;                                      // generation of the current rules
  bool stopping_ = false;
};

}  // namespace bulkhead
