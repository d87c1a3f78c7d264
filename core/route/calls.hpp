// The request pipeline: every request to a server takes the same steps in the same order.
//
//   pins -> judge -> (a person) -> confirm -> record -> send -> the server -> judge the answer
//
// A step that has to wait parks the call with its message (Exchange::parked) and ends the loop; the
// event that it waits for takes the call up again. After any wait the call is judged once more if
// the rules have changed since, and its tool's definition is compared again.
//
//   stage             waits for                          its time
//   checking          the pool (duplicate members)       limits.policy_timeout_ms and more by size
//   deciding          the policy                         the same
//   approving         a person                           limits.approval_timeout_ms
//   recording         its intent's record                BH_TELEMETRY_COMMIT_MS
//   at_server         its turn in a lane, the server     the server's time-out
//   answer_checking   the pool                           limits.policy_timeout_ms and more by size
//   answer_deciding   the policy                         the same
//
// Owner: the Router. Thread: [io]. No reference to a call survives a step: it may have ended.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "profile/profile.hpp"
#include "reactor/reactor.hpp"
#include "route/approval_desk.hpp"
#include "route/asks.hpp"
#include "route/attribution.hpp"
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
#include "route/waiting_bytes.hpp"

namespace bulkhead {

class Calls final : public Asks::Forms {
 public:
  struct Needs {
    const Limits &limits;
    Reactor &reactor;
    RouterCounters &counters;
    ExchangeTable &exchanges;
    Deadlines &deadlines;
    const Gate &gate;
    const Judge &judge;
    DuplicateChecks &checks;  // whose results come to checked()
    WaitingBytes &waiting;
    ApprovalDesk &desk;
    Recorder &recorder;
    ClientAnswers &answers;
    Asks &asks;
    Attribution &attribution;
    Subscriptions &subscriptions;
    Draining &draining;
    std::function<void(std::int32_t level, std::string_view text)> log;
    // The policy's answer under this number is no longer awaited; late: because of its time-out.
    std::function<void(std::uint64_t number, bool late)> on_unanswered;
    // A call has ended: the gateway may be idle.
    std::function<void()> on_ended;
  };
  explicit Calls(Needs needs) : needs_(std::move(needs)) {}

  // ---- beginning ----
  // Starts the call. The request has been answered, or will be.
  void begin(Session &session, Incoming &request, CallInHand &hand);
  // The gateway is stopping: running calls continue, new ones are refused.
  void refuse_new_calls() noexcept { stopping_ = true; }
  // What is still under way is answered with an error that says whether it may have run.
  void end_all();
  // Some client's call is under way, and waits for more than a person.
  bool busy() const;

  // ---- what calls wait for ----
  // Which rules there are, or what they need: calls that wait are judged again before they are
  // sent.
  void rules_changed() noexcept { ++rules_; }
  // The policy, about a call or an answer.
  void decided(std::uint64_t exchange, const Gate::Decision &decision);
  // The pool: whether there are duplicate members.
  void checked(std::uint64_t exchange, bool duplicates);
  void approval_given(std::uint64_t exchange, bool allow, ApprovalSurface surface,
                      const ApprovalScope &scope);
  // A person's answer. BH_E_NOT_FOUND: that call does not wait, or no longer. BH_E_INVALID: there
  // is no such scope.
  Result<void> answer_approval(const ApprovalAnswer &answer);
  // The answer of the client to a question of the gateway's own.
  void form_answered(std::uint64_t exchange, const Message &answer) override;
  // The client cannot be asked, or no longer; others may still answer.
  void form_lost(std::uint64_t exchange) override;
  // No person can be asked, or no longer; `why` continues "needs approval, ".
  void withdraw(std::uint64_t exchange, std::string_view why);
  // Its client has ended its input: what it waits for must not happen behind its back.
  void withdraw_questions(const Session &session);
  void records_committed();
  // Its turn in its lane has come. False: the rules are others, and it has been taken off the lane;
  // it comes again, or has ended.
  bool may_be_sent(Exchange &call);
  void timed_out(Exchange &call);
  // The answer of its server.
  void answered(Exchange &call, const Message &answer);

  // ---- ending ----
  // Takes the exchange off its lane: the lane has nothing more to do with it.
  static void detach(Exchange &exchange);
  static void attach(Exchange &exchange, Lane &lane);
  // The same and off its session, and frees it, without an answer.
  void drop(Exchange &exchange);
  // The same with a record.
  void finish(Exchange &call, std::uint32_t outcome, std::uint64_t bytes_out, std::string_view rule,
              std::string_view error, std::string_view response = {});
  // The same with an error for the client.
  void fail(Exchange &call, std::int32_t error_code, std::string_view text, std::uint32_t outcome);
  // The call has ended for its client: its server is notified, and may continue for a while.
  void retract(Lane *lane, std::uint64_t exchange, bool sent, const Session *session,
               std::string_view reason, const mcp::Scan *reason_scan) const;
  // fail() of a call at its server, with a text that may be the server's own in part: judged as an
  // error of that server is. Its lane has nothing more to do with it.
  void fail_by_server(Exchange &call, std::int32_t error_code, std::string_view text,
                      std::uint32_t outcome);
  // fail() and retract().
  void fail_and_retract(Exchange &call, std::int32_t error_code, std::string_view text,
                        std::uint32_t outcome);
  // The client has given it up with this notification.
  void cancel(Exchange &call, const Message &notification);
  void end_session(Session &session);
  // Calls that are not at this lane yet, and would go there.
  std::vector<std::uint64_t> waiting_for(const Lane &lane) const;

 private:
  enum class Step : std::uint8_t { pins, judge, confirm, record, send };
  using Next = std::optional<Step>;  // nothing: the call waits, or has ended

  void advance(Exchange &call, CallInHand &hand, Step step);
  Next run(Exchange &call, CallInHand &hand, Step step);
  Next check_pins(Exchange &call, const CallInHand &hand, Step then);
  Next judge(Exchange &call, CallInHand &hand);
  Next apply(Exchange &call, CallInHand &hand, const Gate::Decision &decision);
  Next ask_person(Exchange &call, const CallInHand &hand, const Gate::Decision &decision);
  Next confirm(Exchange &call, const CallInHand &hand);
  Next record(Exchange &call, const CallInHand &hand);
  Next send(Exchange &call, const CallInHand &hand);
  bool subscription_goes_on(Exchange &call, const CallInHand &hand);

  Exchange *open(Session &session, Incoming &request, const Target &target);
  bool park(Exchange &call, const CallInHand &hand, Stage stage);
  CallInHand take(Exchange &call);
  void release(Exchange &call);
  void check_later(Exchange &call, const CallInHand &hand);
  void call_decided(Exchange &call, const Gate::Decision &decision);
  void call_checked(Exchange &call, bool duplicates);
  static std::uint32_t flags_of(Exchange &call) noexcept;
  std::uint64_t policy_time_ms(std::size_t bytes) const noexcept;
  std::uint64_t time_ms(Stage stage, std::size_t bytes) const noexcept;
  void policy_timed_out(Exchange &call, bool about_answer);
  void approval_expired(Exchange &call);
  void server_timed_out(Exchange &call);
  void refuse(Exchange &call, const Gate::Decision &decision);
  void refuse_unrecorded(Exchange &call, std::string_view text);

  // calls_answers.cpp
  bool passes_policy(Exchange &call, const Message &answer);
  bool park_answer(Exchange &call, const Message &answer, Stage stage);
  void pass(Exchange &call, const Message &answer);
  void answer_decided(Exchange &call, const Gate::Decision &decision);
  void answer_checked(Exchange &call, bool duplicates);
  void filter(Exchange &call, const Message &answer, const Gate::Decision &decision);
  void refuse_answer(Exchange &call, const Gate::Decision &decision,
                     std::int32_t error_code = code::invalid_request);
  void put_on_record(Exchange &call, const Recorder::End &end);

  const Needs needs_;
  std::deque<std::pair<std::uint64_t, std::uint64_t>> intents_;  // barrier, exchange
  std::uint32_t rules_ = 1;                                      // which are in force
  bool stopping_ = false;
};

}  // namespace bulkhead
