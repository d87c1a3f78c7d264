// The request pipeline. Every request to a server takes the same steps in the same order:
//
//   pins -> judge -> (a person) -> confirm -> record -> send -> the server -> judge the answer
//
// A step that has to wait parks the call with its message (Call::parked) and ends the loop; the
// event that it waits for resumes the call. After any wait the call is judged again if the rules
// have changed since, and the definition of its tool is compared again.
//
//   stage             waits for                          time-out (stage.hpp)
//   awaiting_list     the lists of servers; no call yet  limits.first_list_wait_ms
//   checking          the pool (duplicate members)       limits.policy_timeout_ms, longer by size
//   deciding          the policy                         likewise
//   approving         a person                           limits.approval_timeout_ms
//   recording         its intent's record                BH_TELEMETRY_COMMIT_MS
//   queued            its turn in a lane                 the server's time-out
//   at_server         the server                         the server's time-out
//   suspended         its client, whom the server asked  limits.ask_timeout_ms for each request
//   answer_checking   the pool                           limits.policy_timeout_ms, longer by size
//   answer_deciding   the policy                         likewise
//
// A new stage (the next revision has two: a call whose client is asked for input with its answer,
// and one that was retracted while its server still works on it) is a value of Stage, its time in
// stage_time_ms() and its handler in take_time_out(); the event that ends it is a value of
// CallEvent with its handler in handle(). None of these switches has a default: the compiler names
// what is missing. A client that retries replaces Call::request and continues with the step that
// follows.
//
// Steps do not nest: what arrives while one runs is queued on its call (call_events.hpp) and
// handled after it; see CallLoop. CallParking holds calls that wait, CallAnswers does what follows
// the server's answer, CallEnds ends calls.
//
// Thread: I/O thread. Owned by the Router.
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
#include "route/judge.hpp"
#include "route/recorder.hpp"
#include "route/subscriptions.hpp"
#include "route/target.hpp"

namespace bulkhead {

class Calls final : public Asks::Forms, public CallLoop::Handler {
 public:
  // How often the policy is asked in one step if it changes its rules each time; then the call is
  // refused.
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
    DuplicateChecks &checks;  // whose results come to checked()
    const CallParking &parking;
    ApprovalDesk &desk;
    Recorder &recorder;
    ClientAnswers &answers;
    Subscriptions &subscriptions;
    const Draining &draining;
    CallAnswers &call_answers;
    CallEnds &ends;
    std::function<void(std::int32_t level, std::string_view text)> log;
    // The policy's answer under this number is no longer awaited; late: it timed out.
    std::function<void(std::uint64_t number, bool late)> on_unanswered;
  };
  explicit Calls(Needs needs) : needs_(std::move(needs)) {}

  // Starts the call. The request is answered now or later. If a step of another call runs, the call
  // waits for its end.
  void begin(Session &session, Incoming &request, CallInHand &hand);
  // The gateway is stopping: running calls continue, new ones are refused.
  void refuse_new_calls() noexcept { stopping_ = true; }

  // ---- events that calls wait for; queued if a step runs ----
  // The rules were replaced, or need other facts: calls that wait are judged again before they are
  // sent.
  void rules_changed() noexcept { ++rules_; }
  // The policy has decided about a call or its answer.
  void decided(std::uint64_t call, const Gate::Decision &decision);
  // The pool has looked for duplicate members in a call or its answer.
  void checked(std::uint64_t call, bool duplicates);
  void approval_given(std::uint64_t call, bool allow, ApprovalSurface surface,
                      const ApprovalScope &scope);
  // A person's answer. BH_E_NOT_FOUND: no call waits for it. BH_E_INVALID: unknown
  // scope.
  Result<void> answer_approval(const ApprovalAnswer &answer);
  // The client's answer to the approval form.
  void form_answered(std::uint64_t call, const Message &answer) override;
  // The client cannot be asked, or no longer; others may still answer.
  void form_lost(std::uint64_t call) override;
  // The client has ended its input: nothing that waits for a person may run unseen.
  void withdraw_questions(const Session &session);
  void records_committed();
  // The call's turn in its lane has come. False: the rules have changed and it has left the lane;
  // it is submitted again, or has ended or is about to.
  bool may_be_sent(Call &call);
  void timed_out(Call &call);
  // CallLoop::Handler
  void handle_events(Call &call) override;

 private:
  enum class Step : std::uint8_t { pins, judge, confirm, record, send };
  using Next = std::optional<Step>;  // nothing: the call waits, or has ended

  void advance(Call &call, CallInHand &hand, Next next);
  Next run(Call &call, CallInHand &hand, Step step);
  Next check_pins(Call &call, const CallInHand &hand, Step then);
  Next judge(Call &call, CallInHand &hand);
  Next apply(Call &call, CallInHand &hand, const Gate::Decision &decision);
  Next ask_person(Call &call, const CallInHand &hand, const Gate::Decision &decision);
  Next confirm(Call &call, const CallInHand &hand);
  Next record(Call &call, const CallInHand &hand);
  Next send(Call &call, const CallInHand &hand);
  bool continues_subscription(Call &call, const CallInHand &hand);

  Call *open(Session &session, Incoming &request, const Target &target);
  bool park(Call &call, const CallInHand &hand, Stage stage);
  void check_later(Call &call, const CallInHand &hand);

  // Events, outside of any step.
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
  std::deque<std::pair<std::uint64_t, std::uint64_t>> intents_;  // record's barrier, call
  std::uint32_t rules_ = 1;                                      // generation of the rules in force
  bool stopping_ = false;
};

}  // namespace bulkhead
