// The router: creates the parts of the request path and connects them.
//
//   client message -> scan -> session -> resolve -> gate -> lane -> connector or tools plugin
//   upstream message -> scan -> exchange -> (gate) -> session -> transport
//
// Runs on the reactor thread; the extension tables post the events that arrive on other threads.
// Owned by the Host. Limits: those of the profile.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "catalog/names.hpp"
#include "profile/profile.hpp"
#include "reactor/once_per_turn.hpp"
#include "reactor/reactor.hpp"
#include "route/approval_desk.hpp"
#include "route/asks.hpp"
#include "route/attribution.hpp"
#include "route/calls.hpp"
#include "route/client_answers.hpp"
#include "route/client_inputs.hpp"
#include "route/client_messages.hpp"
#include "route/client_requests.hpp"
#include "route/clients.hpp"
#include "route/counters.hpp"
#include "route/deadlines.hpp"
#include "route/draining.hpp"
#include "route/duplicate_checks.hpp"
#include "route/exchange.hpp"
#include "route/filtered_lists.hpp"
#include "route/gate.hpp"
#include "route/judge.hpp"
#include "route/judged_events.hpp"
#include "route/judged_messages.hpp"
#include "route/lane_links.hpp"
#include "route/list_requests.hpp"
#include "route/listens.hpp"
#include "route/notifications.hpp"
#include "route/parts.hpp"
#include "route/pin_watch.hpp"
#include "route/recorder.hpp"
#include "route/reload.hpp"
#include "route/restored_sessions.hpp"
#include "route/session_edge.hpp"
#include "route/session_journal.hpp"
#include "route/sessions.hpp"
#include "route/stateless_edge.hpp"
#include "route/subscriptions.hpp"
#include "route/targets.hpp"
#include "route/tools_edge.hpp"
#include "route/upstreams.hpp"
#include "route/views.hpp"
#include "route/waiting_bytes.hpp"
#include "route/wire_edge.hpp"

namespace bulkhead {

struct RouterHooks {
  std::function<void(std::int32_t level, std::string_view text)> log;
  std::function<void()> on_status;
  // Called when a session or its input has ended, a response has been sent or a connection has been
  // released. The host then checks whether it may stop.
  std::function<void()> on_idle;
  // Called when the last lane of a removed server has ended. Always called from the event loop,
  // never from inside another call.
  std::function<void()> on_drained;
  // Called when a policy decision is no longer awaited, or when a call for which the policy has
  // required approval has ended. `number` is the number under which the policy was asked. `late` is
  // true if the decision timed out.
  std::function<void(std::uint64_t number, bool late)> on_unanswered;
  // Called when an approval request has been resolved or a grant has ended. The function must only
  // record the outcome.
  std::function<void(const ApprovalOutcome &)> on_approval;
  // Masks the gateway's own credentials in the text. Not set in a process that has no credentials.
  std::function<std::optional<std::string>(std::string_view text)> mask;
  // The key and the epoch for sealing state that clients store; see HostOptions.
  std::string sealing_key;
  std::uint32_t epoch = 0;
  std::string approval_hint;  // added to the error of a call that no approver can see
  // Called with new or changed tool definitions. The function must only store them.
  std::function<void(const std::vector<PinNews> &)> on_pins;
  // Called with a new or changed list of a shared server. The function must only store the list.
  std::function<void(const ListNews &)> on_list;
};

class Router final {
 public:
  Router(const Profile &profile, Reactor &reactor, RouterHooks hooks);
  ~Router() = default;
  Router(const Router &) = delete;
  Router &operator=(const Router &) = delete;

  // Sets the ledger, which contains the sessions of earlier processes and keeps those of this one.
  // Must be called before start(). The ledger is borrowed. It may be null; see
  // SessionJournal::use().
  void use_ledger(Ledger *ledger);
  // If `eager` is true, starts the lanes for clients without capabilities. Otherwise, no lane is
  // started until the first client connects.
  void start(bool eager);
  // Closes the lanes. Must be called after the sessions have ended. When wires.closing() returns 0,
  // the connectors have released all connections.
  void close_lanes();

  const RouterParts &parts() const noexcept { return parts_; }
  // Returns true if the input of every session has ended and all responses have been sent. Parked
  // calls whose clients have been asked do not count.
  bool idle() const;

 private:
  const RouterHooks hooks_;
  OncePerTurn status_;  // at startup, many lanes change state in one iteration of the event loop
  Names names_;
  Gate gate_;
  PinWatch pins_;
  Recorder recorder_;
  RouterCounters counters_;
  const std::uint64_t seed_;  // random
  const RequestStates states_;
  const TaskIds task_ids_;
  const TaskAnswers task_answers_;
  Sessions sessions_;
  SessionJournal journal_;
  ClientAnswers answers_;
  CallTable call_table_;
  CallLoop loop_;
  ExchangeTable exchanges_;
  Deadlines deadlines_;
  Attribution attribution_;
  WaitingBytes waiting_bytes_;
  DuplicateChecks duplicate_checks_;
  JudgedEvents events_;
  Asks asks_;
  Notifications notifications_;
  Subscriptions subscriptions_;
  Upstreams upstreams_;
  Draining draining_;
  FilteredLists filters_;
  Views views_;
  Judge judge_;
  ApprovalDesk desk_;
  CallParking parking_;
  CallEnds ends_;
  InputRounds rounds_;
  TaskRounds task_rounds_;
  const AnswerBridge bridge_;
  CallAnswers call_answers_;
  Calls calls_;
  ClientInputs inputs_;
  WireEdge wires_;
  ToolsEdge tools_;
  LaneLinks lanes_;
  JudgedMessages judged_messages_;
  ListRequests lists_;
  Targets targets_;
  TaskRequests task_requests_;
  ClientRequests requests_;
  SessionEdge session_edge_;
  Listens listens_;
  StatelessEdge stateless_edge_;
  ClientMessages messages_;
  RestoredSessions restored_;
  Clients clients_;
  Reload reload_;
  const RouterParts parts_;
};

}  // namespace bulkhead
