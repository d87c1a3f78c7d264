// The router: sessions on one side, upstreams on the other, exchanges between them.
//
//   client message -> scan -> session -> resolve -> gate -> lane -> connector or tools plugin
//   upstream message -> scan -> exchange -> (gate) -> session -> transport
//
// Owner: the Host. Thread: [io], all of it; the extension tables post what comes from elsewhere.
// Bounds: Limits of the profile.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/slots.hpp"
#include "bulkhead/abi/ext/transport.h"
#include "catalog/catalogue.hpp"
#include "profile/profile.hpp"
#include "reactor/reactor.hpp"
#include "route/approval_desk.hpp"
#include "route/asks.hpp"
#include "route/attribution.hpp"
#include "route/calls.hpp"
#include "route/client_answers.hpp"
#include "route/counters.hpp"
#include "route/deadlines.hpp"
#include "route/draining.hpp"
#include "route/duplicate_checks.hpp"
#include "route/evicted.hpp"
#include "route/exchange.hpp"
#include "route/filtered_lists.hpp"
#include "route/gate.hpp"
#include "route/judge.hpp"
#include "route/judged_events.hpp"
#include "route/lane_host.hpp"
#include "route/ledger.hpp"
#include "route/list_requests.hpp"
#include "route/notifications.hpp"
#include "route/pin_watch.hpp"
#include "route/recorder.hpp"
#include "route/session.hpp"
#include "route/sessionless.hpp"
#include "route/sessions.hpp"
#include "route/subscriptions.hpp"
#include "route/targets.hpp"
#include "route/tools_edge.hpp"
#include "route/upstreams.hpp"
#include "route/views.hpp"
#include "route/waiting_bytes.hpp"
#include "route/wire_edge.hpp"

namespace bulkhead {

class WireLane;

struct RouterHooks {
  std::function<void(std::int32_t level, std::string_view text)> log;
  std::function<void()> on_status;
  // A session has ended or an answer has gone: the host looks whether it may stop.
  std::function<void()> on_idle;
  // The last lane of a server that had been taken out has ended; from the loop, nested in nothing.
  std::function<void()> on_drained;
  // Nobody waits any more for what the policy has not answered: a call, a result or a place in a
  // list, by the number it was asked under; or a call that a person was asked about has ended.
  // late: since it has had its time.
  std::function<void(std::uint64_t number, bool late)> on_unanswered;
  // A question to a person has ended, however that was. For the record; it must do nothing else.
  std::function<void(const ApprovalOutcome &)> on_approval;
  // The text without the gateway's own credentials; nothing in a process that knows none of them.
  std::function<std::optional<std::string>(std::string_view text)> mask;
  std::string approval_hint;  // what a client is told whom nobody could be asked about
  // Tools' definitions that were not known, or are others now. It must do nothing else.
  std::function<void(const std::vector<PinNews> &)> on_pins;
  // What a lazy server lists was not known, or is another now. As on_pins.
  std::function<void(const ListNews &)> on_list;
};

// One server of the set that exchange_upstreams() makes.
struct NextUpstream {
  Upstream *kept = nullptr;            // stays, with its lanes
  std::optional<ServerDef> redefined;  // of one that is kept: its new definition
  std::unique_ptr<Upstream> fresh;     // or a new one, from new_upstream()
  const Upstream *replaces = nullptr;  // of a new one: the one of this name before
};

class Router : public LaneHost,
               private JudgedEvents::Outcome,
               private Asks::Forms,
               private Views::Owner,
               private Draining::Owner {
 public:
  Router(const Profile &profile, Reactor &reactor, RouterHooks hooks);
  ~Router() override;
  Router(const Router &) = delete;
  Router &operator=(const Router &) = delete;

  // Set up, before start().
  void add_upstream(std::unique_ptr<Upstream> upstream);

  // While running: makes `next` the servers, in this order. Those that are in it neither kept nor
  // new leave every view at once and drain: their calls may go on for limits.drain_ms and then
  // fail. Clients keep their sessions and are told of changed lists. From the loop, nested in no
  // call of a plugin.
  std::unique_ptr<Upstream> new_upstream(ServerDef definition);
  void exchange_upstreams(std::vector<NextUpstream> next);
  std::size_t draining() const noexcept { return draining_.size(); }
  bool is_draining(const Upstream *upstream) const noexcept { return draining_.has(upstream); }
  // Names, limits or what is exposed are others now (they are read through the profile).
  void profile_changed();
  // So are the approved definitions of tools.
  void use_pins();

  // ---- approvals (policy verdict "ask") ----
  // What waits for a person. watch_ms: whoever asks will look again within so long, and so can be
  // asked; at most Approvals::max_watch_ms; 0: it was just a look.
  ApprovalList approvals(std::uint64_t watch_ms) { return desk_.list(watch_ms); }
  std::size_t approvals_waiting() const noexcept { return desk_.size(); }
  // BH_E_NOT_FOUND: it does not wait (any more). BH_E_INVALID: there is no such scope.
  Result<void> answer_approval(const ApprovalAnswer &answer);

  Gate &gate() noexcept { return gate_; }
  Recorder &recorder() noexcept { return recorder_; }
  // Starts the lanes for clients without capabilities (eager), else waits for the first client.
  void start(bool eager);
  // Ends sessions, then lanes; lanes_closing() says when the connectors have let go.
  void end_sessions(std::string_view reason);
  void close_lanes();
  std::size_t lanes_closing() const noexcept { return wires_.closing(); }

  // ---- client side (bh_host_transport) ----
  bh_status session_open(ClientEnd &end, const bh_peer &peer, bh_session *out, bh_error *error);
  bh_status deliver(bh_session session, std::uint64_t stream, std::string_view message,
                    bh_delivery *out);
  // What bh_host_transport.deliver_message() promises; sessionless messages are answered on `end`.
  // Bound: limits.sessions of them wait for their answers.
  bh_status deliver_message(ClientEnd &end, const bh_incoming &message, bh_delivery *out);
  // Cancels the sessionless message of that stream.
  void stream_gone(const ClientEnd &end, std::uint64_t stream);
  void session_close(bh_session session, std::uint32_t how);
  // What is delivered from now on comes from a process of this name.
  void set_process_name(bh_session session, std::string_view name);
  bh_status check_revision(bh_session session, std::string_view revision) const;

  // ---- upstream side (bh_host_connector, bh_host_tools, bh_host_policy) ----
  void upstream_message(bh_lane lane, std::uint64_t exchange_hint, std::string_view message) {
    wires_.message(lane, exchange_hint, message);
  }
  void exchange_failed(bh_lane lane, std::uint64_t exchange, const Error &error) {
    wires_.exchange_failed(lane, exchange, error);
  }
  void lane_down(bh_lane lane, const Error &error, std::uint32_t retry_after_ms) {
    wires_.down(lane, error, retry_after_ms);
  }
  void lane_closed(bh_lane lane);
  ToolsEdge &tools() noexcept { return tools_; }
  // What a session is, for sealing; nothing: stale or not initialized.
  struct SessionFacts {
    std::uint8_t revision = 0;
    ClientCaps caps = 0;
    std::string principal;
  };
  std::optional<SessionFacts> session_facts(bh_session session);

  // router_ledger.cpp: sessions that go on in the next process. Before start(); borrowed, may be
  // null: then none does.
  void use_ledger(Ledger *ledger);
  // `id`: what the transport will find the session by.
  void session_remember(bh_session session, std::string_view id);
  // Makes a fresh session what it was in an earlier process, or before it was evicted. The client
  // has lists of then, so it is told that they may be others.
  void session_restore(bh_session session, std::uint8_t revision, ClientCaps caps,
                       std::string_view id);
  // Whether the session of this id was ended with BH_SESSION_EVICTED and may be taken up again.
  bool session_was_evicted(std::string_view id) const;
  // Whether session_carry() can succeed.
  bool carries() const noexcept { return ledger_ != nullptr && carried_ == 0; }
  // Ids of sessions of earlier processes mean nothing any more.
  void sessions_too_old();
  // Makes a fresh session the one of the client that comes with the process: restored, if an
  // earlier process had it and its handshake was over. What that process owed the client is
  // answered in a later turn.
  struct Carried {
    bool restored = false;
    std::uint64_t last_stream = 0, note = 0;
    std::string_view unread;  // until the next session_keep()
  };
  std::optional<Carried> session_carry(bh_session session);
  void session_note(bh_session session, std::uint64_t note);
  void session_settle(bh_session session, std::uint64_t stream);
  bool session_keep(bh_session session, std::string_view bytes, bool more);
  void session_taken(bh_session session, std::uint64_t n);
  // More records may be committed now.
  void records_committed() {
    calls_.records_committed();
    answers_.records_committed();
  }
  void policy_decided(std::uint64_t exchange, const Gate::Decision &decision);
  void policy_filtered(std::uint64_t question, bool listed) { filters_.answered(question, listed); }
  void policy_changed();

  // ---- for lanes ----
  const Limits &limits() const noexcept override { return profile_.limits; }
  const Profile &profile() const noexcept { return profile_; }
  Reactor &reactor() noexcept override { return reactor_; }
  ExchangeTable &exchanges() noexcept override { return exchanges_; }
  void log(std::int32_t level, std::string_view text) const override { hooks_.log(level, text); }
  std::optional<std::string> without_credentials(std::string_view text) const override {
    return hooks_.mask ? hooks_.mask(text) : std::nullopt;
  }
  bh_lane register_wire(WireLane *lane) override { return wires_.add(lane); }
  // The connection is being closed; its handle stays known until lane_closed.
  void detach_wire(bh_lane lane) override { wires_.detach(lane); }
  void forget_wire(bh_lane lane) override { wires_.forget(lane); }
  void arm(Exchange &exchange, std::uint64_t timeout_ms) override {
    deadlines_.arm(exchange, timeout_ms);
  }
  void attach(Exchange &exchange, Lane &lane) override { Calls::attach(exchange, lane); }
  void drop(Exchange &exchange) override { calls_.drop(exchange); }
  void tools_refused(bh_call call, const Error &error) override { tools_.refused(call, error); }
  void expect_completed(bh_call call) override { tools_.expect_completed(call); }
  bool may_be_sent(Exchange &exchange) override { return calls_.may_be_sent(exchange); }
  void fail_exchange(Exchange &exchange, std::int32_t error_code, std::string_view text,
                     std::uint32_t outcome) override {
    calls_.fail_by_server(exchange, error_code, text, outcome);
  }
  void lane_changed(Lane &lane) override { views_.lane_changed(lane); }
  void items_changed(Lane &lane) override { views_.items_changed(lane); }
  void list_learned(const ListNews &news) const override {
    if (hooks_.on_list) hooks_.on_list(news);
  }
  void tools_listed(const Lane &lane) override { pins_.listed(lane); }
  void lane_ready(Lane &lane) override;
  void lane_lost(Lane &lane) override;
  // A message of this server, or to it, could not be rewritten and goes nowhere.
  void message_lost(const Lane &lane, mcp::Method method);
  void lane_ends(Lane &lane) override { subscriptions_.forget_lane(lane); }

  // ---- for the host ----
  std::size_t session_count() const noexcept { return sessions_.size() - sessionless_count_; }
  std::uint32_t in_flight() const noexcept { return exchanges_.size(); }
  bool settled() const { return views_.all_settled(); }
  // No session, or every session's input has ended and its answers are out.
  bool idle() const;
  // The gateway is stopping: running calls continue, new ones are refused.
  void refuse_new_calls() noexcept { calls_.refuse_new_calls(); }
  // Some client's call is under way, and waits for more than a person.
  bool busy() const;
  // What is still under way is answered with an error that says whether it may have run.
  void end_calls();
  const Upstreams::List &upstreams() const noexcept { return upstreams_.all(); }
  const RouterCounters &counters() const noexcept { return counters_; }
  std::vector<std::string> collisions() { return views_.collisions(); }
  // JSON for bh_host_control.list_items; only for sessions of that end.
  bh_status list_items(bh_session session, const ClientEnd *end, ItemKind kind, std::string *out);

 private:
  // router_client.cpp: what clients send
  bool handle_message(Session &session, const ReplyTo &reply, std::string_view message,
                      bh_delivery *out);
  void handle_request(Session &session, Incoming &request);
  void handle_notification(Session &session, const Message &message);
  void pass_progress(Session &session, const Message &message);
  void pass_roots_changed(Session &session, const Message &message);
  static std::string first_start_text(const View &view);
  void begin_session(Session &session, std::uint8_t revision, ClientCaps caps);
  void initialize(Session &session, Incoming &request);
  std::string initialize_result(const Session &session) const;
  static std::string instructions_of(const View &view);
  void call(Session &session, Incoming &request);
  void set_log_level(Session &session, Incoming &request);
  void cancel(Session &session, std::string_view message, const mcp::Scan &scan);

  // router_sessionless.cpp
  bh_status check_incoming(const ClientEnd &end, const bh_incoming &message, bh_error *error);
  bh_status deliver_sessionless(ClientEnd &end, const bh_incoming &message, bh_delivery *out);
  void end_sessionless(Session &session);

  // router_batches.cpp
  bool handle_batch(Session &session, const ReplyTo &reply, std::string_view message);

  void checked(std::uint64_t number, bool duplicates);
  void unanswered(std::uint64_t number, bool late) const;

  // JudgedEvents::Outcome
  void pass(const JudgedEvent &event) override;
  void refused(const JudgedEvent &event) override;
  bool serves(std::string_view server) const override;

  // Asks::Forms
  void form_answered(std::uint64_t exchange, const Message &answer) override;
  void form_lost(std::uint64_t exchange) override;
  // Draining::Owner
  std::vector<std::uint64_t> waiting_for(const Lane &lane) const override {
    return calls_.waiting_for(lane);
  }
  void end_drained(Exchange &call, Lane &lane) override;
  void drained() override;

  // router_reload.cpp
  void move_subscriptions(const Upstreams::List &gone);

  // router_ledger.cpp
  void save(const Session &session);
  void forget(Session &session);
  void go_on_later();
  void go_on();
  void answer_owed();
  void lists_ready(View &view) override;
  void subscribe_again(bh_session session);

  // Views::Owner
  void handle_again(Session &session, Incoming &request) override {
    handle_request(session, request);
  }
  void lane_goes(Lane &lane) override;

  void record_message(const Session *session, bh_session handle, std::string_view message,
                      const mcp::Scan &scan, std::uint64_t start_ns, const Recorder::End &end);

  // router.cpp: sessions, answers, time
  Session *session(bh_session handle) noexcept { return sessions_.find(handle); }
  Session &add_session(ClientEnd &end, const bh_peer &peer);
  void close_session(Session &session);
  void evict(Session &session);
  void close_sessions_later();
  void timed_out(Exchange &exchange);
  void status_changed() override;
  void check_idle() override;

  const Profile &profile_;
  Reactor &reactor_;
  const RouterHooks hooks_;
  Names names_;
  Gate gate_;
  PinWatch pins_;
  Recorder recorder_;
  RouterCounters counters_;
  const std::uint64_t seed_;  // random
  Sessions sessions_;
  SessionlessStreams sessionless_;
  std::size_t sessionless_count_ = 0;  // of sessions_ that stand for one message
  ClientAnswers answers_;
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
  Calls calls_;
  WireEdge wires_;
  ToolsEdge tools_;
  ListRequests lists_;
  Targets targets_;
  // What ended to make room: sessions, and those whose client had not finished its handshake.
  Evicted evicted_{65'536}, evicted_early_{65'536};
  Ledger *ledger_ = nullptr;
  std::vector<LedgerRequest> owed_;  // answers to the carried client
  bh_session carried_ = 0;
  std::uint64_t ledger_timer_ = 0;
  bool go_on_pending_ = false;
  std::vector<std::pair<bh_session, std::uint32_t>> closing_sessions_;
  bool status_pending_ = false;
  bool ending_ = false;
};

}  // namespace bulkhead
