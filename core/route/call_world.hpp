// Shared by the request pipeline tests: the parts of the pipeline, with a policy, a telemetry
// plugin, a lane and a client that are controlled by the test.
#pragma once

#include <catch2/catch.hpp>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "route/calls.hpp"
#include "route/client_inputs.hpp"
#include "route/fakes.hpp"
#include "route/kept_list.hpp"
#include "route/protocol.hpp"
#include "route/view.hpp"

namespace bulkhead {

struct World : LaneHost, JudgedEvents::Outcome, Asks::Forms, Draining::Owner {
  Profile profile;
  std::unique_ptr<Reactor> loop = *Reactor::create();
  FakePolicy policy;
  FakeTelemetry telemetry;
  Gate gate;
  PinWatch pins{profile, [](std::int32_t, std::string_view) {}, nullptr};
  Names names{profile.naming};
  RouterCounters counters;
  Recorder recorder{*loop};
  Sessions sessions{1};
  FakeClient client;
  ClientAnswers answers{sessions, recorder, *loop, profile.limits, counters, [] {}};
  CallTable table;
  ExchangeTable exchange_table;
  CallLoop loop_of_calls{table, calls};
  Deadlines deadlines{table, exchange_table, *loop, {[](Call &) {}, [](Exchange &) {}}};
  Attribution attribution{sessions, exchange_table, *loop};
  WaitingBytes waiting{profile.limits};
  DuplicateChecks checks{*loop, [](std::uint64_t, bool) {}};
  std::vector<std::uint64_t> unanswered;
  JudgedEvents events{{gate, sessions, checks, waiting, recorder, counters, profile.limits, *loop,
                       [](std::int32_t, std::string_view) {}, [](std::uint64_t, bool) {}, *this}};
  Asks asks{1,
            {gate, attribution, sessions, table, deadlines, answers, events, counters,
             profile.limits, *loop, [](const Lane &, mcp::Method) {}, *this, &inputs}};
  Notifications notifications{{gate, attribution, exchange_table, sessions, answers, events,
                               counters, [](const Lane &, mcp::Method) {}}};
  Subscriptions subscriptions{{sessions, table, events, notifications, names, profile.limits,
                               [](const Session &) {}, [](const Lane &, mcp::Method) {}}};
  Draining draining_servers{profile.limits, *loop, table, *this};
  Judge judge{gate, pins, recorder, *loop};
  ApprovalDesk desk{{profile, *loop, recorder, counters, asks, answers, nullptr, "no approver"}};
  std::function<void(std::uint64_t, bool)> on_unanswered = [this](std::uint64_t number, bool) {
    unanswered.push_back(number);
  };
  CallParking parking{profile.limits, deadlines, waiting};
  CallEnds ends{{*loop, table, loop_of_calls, exchange_table, parking, desk, recorder, answers,
                 asks, attribution, subscriptions, draining_servers, on_unanswered}};
  InputRounds rounds{{table, loop_of_calls, parking, deadlines, asks, ends,
                      [this](Call &call) { calls.repeat(call); },
                      [](std::string_view) { return nullptr; }}};
  AnswerBridge bridge{{*loop, gate, ends, rounds}};
  CallAnswers call_answers{{*loop, counters, loop_of_calls, gate, judge, checks, parking, recorder,
                            answers, asks, ends, bridge, on_unanswered, [] {}}};
  Calls calls{{profile.limits,
               counters,
               table,
               loop_of_calls,
               exchange_table,
               deadlines,
               gate,
               judge,
               checks,
               parking,
               desk,
               recorder,
               answers,
               subscriptions,
               draining_servers,
               call_answers,
               ends,
               rounds,
               [](std::int32_t, std::string_view) {},
               on_unanswered}};
  RequestStates states{{}, 1};
  ClientInputs inputs{{},
                      1,
                      {profile.limits, *loop, sessions, table, answers, asks, ends, states,
                       [this](Session &s, ClientEnd &end) { return hand_over(s, end); },
                       [this](bh_session s) { ends.end_session(*sessions.find(s)); }}};
  Upstream upstream{*this, [] {
                      ServerDef def;
                      def.name = "s";
                      return def;
                    }()};
  FakeLane lane{*this, upstream, cap::roots, 0};
  Session &session = open_session(sessions, client);
  std::uint64_t id = 0;  // of the call

  World() {
    profile.approval.api = true;
    gate.use(&policy_table, &policy);
  }
  // Runs the event loop until the pool has finished all checks and freed their data.
  ~World() override {
    for (int i = 0; i < 2'000 && loop->held(nullptr).blocking != 0; ++i) loop->poll(10);
    loop->poll(0);
  }

  // LaneHost
  const Limits &limits() const noexcept override { return profile.limits; }
  Reactor &reactor() noexcept override { return *loop; }
  void log(std::int32_t, std::string_view) const override {}
  std::optional<std::string> without_credentials(std::string_view) const override { return {}; }
  bh_lane register_wire(WireLane *) override { return 0; }
  void detach_wire(bh_lane) override {}
  void forget_wire(bh_lane) override {}
  ExchangeTable &exchanges() noexcept override { return exchange_table; }
  void arm(Exchange &e, std::uint64_t ms) override { deadlines.arm(e, ms); }
  void drop(Exchange &e) override { ends.drop(e); }
  void answer_call(Call &call, const Message &answer) override {
    call_answers.answered(call, answer);
  }
  void fail_call(Call &call, std::int32_t error_code, std::string_view text,
                 std::uint32_t outcome) override {
    call_answers.fail_by_server(call, error_code, text, outcome);
  }
  bool may_be_sent(Call &call) override { return calls.may_be_sent(call); }
  void send_again(Call &call) override { calls.send_again(call); }
  void tools_refused(bh_call, const Error &) override {}
  void expect_completed(bh_call) override {}
  void lane_changed(Lane &) override {}
  void items_changed(Lane &l) override { calls.definitions_changed(l); }
  void lane_ready(Lane &) override {}
  void lane_lost(Lane &) override {}
  void tools_listed(const Lane &) override {}
  void list_learned(const ListNews &) const override {}
  void lane_ends(Lane &) override {}
  // Other interfaces.
  void pass(const JudgedEvent &) override {}
  void refused(const JudgedEvent &) override {}
  void form_answered(std::uint64_t call, const Message &m) override {
    calls.form_answered(call, m);
  }
  void form_lost(std::uint64_t call) override { calls.form_lost(call); }
  void input_answered(std::uint64_t call, std::uint32_t number, const Message &m) override {
    calls.input_answered(call, number, m);
  }
  std::vector<std::uint64_t> waiting_for(const Lane &l) const override {
    return ends.waiting_for(l);
  }
  void end_drained(Call &call, Lane &) override { ends.end_drained(call, "it was removed"); }
  void drained() override {}

  // The server lists the tool "t" with this description, or no tool if the description is empty. If
  // pins are enforced, the first definition is approved.
  void server_lists(std::string_view description) {
    const std::string tool = R"({"name":"t","description":")" + std::string(description) + R"("})";
    lane.list(ItemKind::tool, R"({"tools":[)" + (description.empty() ? "" : tool) + "]}");
    pins.listed(lane);
    items_changed(lane);
  }
  void enforce_pins() {
    static const bh_connector any{};
    upstream.connector = &any;  // tools of plugins are not compared with pins
    profile.pins.mode = PinRules::Mode::enforce;
    pins.use_profile({});
  }

  void begin(std::size_t bytes) {
    begin(session, "\"c\"", bytes);
    find_call();
  }
  void begin(Session &s, const std::string &id_token, std::size_t bytes) {
    gate.use(&policy_table, &policy);
    const std::string text =
        R"({"jsonrpc":"2.0","id":)" + id_token +
        R"(,"method":"tools/call","params":{"name":"s__t","arguments":{"x":")" +
        std::string(bytes, 'x') + R"("}}})";
    mcp::Scan scan;
    mcp::ScanError error;
    REQUIRE(mcp::scan(text, &scan, &error));
    Incoming request{{s.handle, 7, 0}, {text, &scan}, 1};
    CallInHand hand{request.message, {&lane, {}, scan.name}, {}, {}};
    hand.target.resolved.original_token = "\"t\"";
    const auto &tools = lane.items(ItemKind::tool).items;
    if (!tools.empty()) hand.target.resolved.definition_hash = tools[0].hash;
    calls.begin(s, request, hand);
  }
  void find_call() {
    if (session.open_calls.head != nullptr) id = session.open_calls.head->id;
  }
  void server_answers(std::size_t bytes) {
    Call &call = *table.get(id);
    const std::string text = R"({"jsonrpc":"2.0","id":)" + std::to_string(call.exchange->id) +
                             R"(,"result":{"y":")" + std::string(bytes, 'y') + R"("}})";
    mcp::Scan scan;
    mcp::ScanError error;
    REQUIRE(mcp::scan(text, &scan, &error));
    call_answers.answered(call, {text, &scan});
  }
  // Makes the server respond with a result that asks for input. `rest` contains the other members
  // of the result.
  void server_asks_for_input(const std::string &rest) {
    Call &call = *table.get(id);
    const std::string text = R"({"jsonrpc":"2.0","id":)" + std::to_string(call.exchange->id) +
                             R"(,"result":{"resultType":"input_required",)" + rest + "}}";
    mcp::Scan scan;
    mcp::ScanError error;
    REQUIRE(mcp::scan(text, &scan, &error));
    call_answers.answered(call, {text, &scan});
  }
  void server_asks() {
    const std::string text = R"({"jsonrpc":"2.0","id":"r","method":"roots/list"})";
    mcp::Scan scan;
    mcp::ScanError error;
    REQUIRE(mcp::scan(text, &scan, &error));
    asks.request(lane, 0, {text, &scan});
  }
  void client_answers_ask() {
    for (const FakeClient::Sent &sent : client.sent) {
      if (sent.kind != BH_OUT_ASK) continue;
      const std::string text = R"({"jsonrpc":"2.0","id":)" +
                               std::string(mcp::member(sent.text, "id")) +
                               R"(,"result":{"roots":[]}})";
      mcp::Scan scan;
      mcp::ScanError error;
      REQUIRE(mcp::scan(text, &scan, &error));
      asks.answered(session, {text, &scan});
      return;
    }
  }
  // Opens a new session that takes over the client's request, and connects the session `s` to
  // `end`. Returns the new session.
  Session *hand_over(Session &s, ClientEnd &end) {
    Session &request = open_session(sessions, *s.end);
    s.end = &end;
    return &request;
  }
  // Returns the message that asks the client for input, or an empty string if none was sent.
  std::string input_required() const {
    for (const FakeClient::Sent &sent : client.sent) {
      if (sent.text.find(R"("resultType":"input_required")") != std::string::npos) return sent.text;
    }
    return {};
  }
  // Repeats the client's request. The default responses answer roots/list and approval forms.
  // Returns the new session, or null if the client has not been asked.
  Session *client_repeats(
      const std::string &responses =
          R"({"input-1":{"roots":[],"action":"accept","content":{"decision":"allow"}}})") {
    const std::string asked = input_required();
    if (asked.empty()) return nullptr;
    Session &again = open_session(sessions, client);
    const std::string state(mcp::member(mcp::member(asked, "result"), "requestState"));
    const Scanned request(
        R"({"jsonrpc":"2.0","id":"again","method":"tools/call","params":{"name":"s__t",)"
        R"("arguments":{ "x":"\u0078"},"_meta":{"progressToken":"new"}}})");
    const auto opened = states.open(again, request.get(), state, loop->now_ns());
    REQUIRE(opened.has_value());
    Incoming incoming{{again.handle, 8, 0}, request.get(), 1};
    inputs.repeat(again, incoming, std::get<ParkedTicket>(*opened), responses);
    return &again;
  }
  void decide(const Gate::Decision &decision) { calls.decided(id, decision); }
  void commit() {
    recorder.set_committed(&telemetry, recorder.barrier());
    calls.records_committed();
    answers.records_committed();
  }
  std::vector<std::string> answers_sent() const {
    std::vector<std::string> out;
    for (const FakeClient::Sent &sent : client.sent) {
      const bool interim = sent.text.find(R"("input_required")") != std::string::npos;
      if (sent.kind == BH_OUT_ANSWER && !interim) out.push_back(sent.text);
    }
    return out;
  }
  // Returns the result of the test's last step: a stage, or the message for the client.
  std::string outcome() {
    recorder.set_committed(&telemetry, recorder.barrier());
    answers.records_committed();
    const Call *call = table.get(id);
    // If the client was asked, the end of the call is stored until the client repeats its request.
    if (call == nullptr && answers_sent().empty()) client_repeats();
    if (call != nullptr) {
      CHECK(answers_sent().empty());
      static constexpr const char *names_of[] = {
          "open",      "awaiting list",   "checking",        "deciding",
          "approving", "recording",       "queued",          "at server",
          "suspended", "awaiting repeat", "answer checking", "answer deciding",
          "asking"};
      return names_of[static_cast<std::size_t>(call->stage)];
    }
    CHECK(table.size() == 0);
    CHECK(sessions.find(session.handle)->open_calls.size == 0);
    CHECK(exchange_table.size() == 0);
    CHECK(lane.exchanges.size == 0);
    CHECK(lane.in_flight == 0);
    CHECK(desk.size() == 0);
    CHECK(waiting.take(profile.limits.policy_waiting_bytes));  // all bytes have been released
    const std::vector<std::string> texts = answers_sent();
    if (texts.empty()) return "silence";
    CHECK(texts.size() == 1);
    const std::string &text = texts[0];
    if (text.empty()) return "released";
    const std::size_t at = text.find("\"message\":\"");
    if (at == std::string::npos) return "result";
    const std::size_t from = at + 11;
    return text.substr(from, text.find('"', from) - from);
  }
};

inline Gate::Decision allow() {
  return {};
}
inline Gate::Decision block() {
  return Gate::refusal("rule", "no");
}
inline Gate::Decision ask() {
  Gate::Decision out = Gate::refusal("rule", "may it?");
  out.asks = true;
  return out;
}

// Functions that bring a call into each stage.
inline const std::map<std::string, std::function<void(World &)>> stages = {
    {"checking",
     [](World &w) {
       w.policy.needs = BH_POLICY_DECIDES | BH_POLICY_READS_ARGUMENTS;
       w.begin(DuplicateChecks::at_once + 1);
     }},
    {"deciding",
     [](World &w) {
       w.policy.needs = BH_POLICY_DECIDES;
       w.policy.decides = BH_PENDING;
       w.begin(1);
       w.policy.decides = BH_OK;
     }},
    {"approving",
     [](World &w) {
       w.policy.needs = BH_POLICY_DECIDES;
       w.policy.verdict = BH_VERDICT_ASK;
       w.begin(1);
       w.policy.verdict = BH_VERDICT_ALLOW;
     }},
    {"recording",
     [](World &w) {
       w.policy.needs = BH_POLICY_DECIDES;
       w.telemetry.needs = BH_TELEMETRY_TEXTS | BH_TELEMETRY_EVENTS | BH_TELEMETRY_COMMITS;
       w.recorder.add_sink(&telemetry_table, &w.telemetry);
       w.begin(1);
     }},
    {"queued",
     [](World &w) {
       w.policy.needs = BH_POLICY_DECIDES;
       w.lane.queues = true;
       w.begin(1);
     }},
    {"at server",
     [](World &w) {
       w.policy.needs = BH_POLICY_DECIDES;
       w.begin(1);
     }},
    {"suspended",
     [](World &w) {
       w.policy.needs = BH_POLICY_DECIDES;
       w.session.caps = cap::roots;
       w.begin(1);
       w.server_asks();
     }},
    {"awaiting repeat",
     [](World &w) {
       w.policy.needs = BH_POLICY_DECIDES;
       w.session.caps = cap::roots;
       w.session.repeats_requests = true;
       w.begin(1);
       w.server_asks();
       REQUIRE(wait_for(*w.loop, [&w] { return !w.input_required().empty(); }));
     }},
    {"answer checking",
     [](World &w) {
       w.policy.needs = BH_POLICY_DECIDES | BH_POLICY_READS_RESULTS;
       w.begin(1);
       w.server_answers(DuplicateChecks::at_once + 1);
     }},
    {"answer deciding",
     [](World &w) {
       w.policy.needs = BH_POLICY_DECIDES | BH_POLICY_READS_RESULTS;
       w.policy.observes = BH_PENDING;
       w.begin(1);
       w.server_answers(1);
       w.policy.observes = BH_OK;
     }},
    {"asking",
     [](World &w) {
       w.policy.needs = BH_POLICY_DECIDES;
       w.lane.stateless = true;
       w.session.caps = cap::roots;
       w.begin(1);
       w.server_asks_for_input(R"("inputRequests":{"r":{"method":"roots/list"}})");
     }},
};

// The events that can occur in a stage.
inline const std::vector<std::pair<std::string, std::function<void(World &)>>> happenings = {
    {"allowed", [](World &w) { w.decide(allow()); }},
    {"blocked", [](World &w) { w.decide(block()); }},
    {"asked", [](World &w) { w.decide(ask()); }},
    {"allowed by old rules",
     [](World &w) {
       w.calls.rules_changed();
       w.policy.verdict = BH_VERDICT_BLOCK;
       w.decide(allow());
     }},
    {"no duplicates", [](World &w) { w.calls.checked(w.id, false); }},
    {"duplicates", [](World &w) { w.calls.checked(w.id, true); }},
    {"person: yes",
     [](World &w) { w.calls.approval_given(w.id, true, ApprovalSurface::none, {}); }},
    {"person: no",
     [](World &w) { w.calls.approval_given(w.id, false, ApprovalSurface::none, {}); }},
    {"person: yes, rules: no",
     [](World &w) {
       w.policy.verdict = BH_VERDICT_BLOCK;
       w.calls.approval_given(w.id, true, ApprovalSurface::none, {});
     }},
    {"input ends", [](World &w) { w.calls.withdraw_questions(w.session); }},
    {"committed", [](World &w) { w.commit(); }},
    {"committed, rules: no",
     [](World &w) {
       w.calls.rules_changed();
       w.policy.verdict = BH_VERDICT_BLOCK;
       w.commit();
     }},
    {"its turn", [](World &w) { w.lane.turn(); }},
    {"its turn, rules: no",
     [](World &w) {
       w.calls.rules_changed();
       w.policy.verdict = BH_VERDICT_BLOCK;
       w.lane.turn();
     }},
    {"its turn, rules: yes",
     [](World &w) {
       w.calls.rules_changed();
       w.lane.turn();
     }},
    {"time",
     [](World &w) {
       w.table.disarm(*w.table.get(w.id));  // like Deadlines
       w.calls.timed_out(*w.table.get(w.id));
     }},
    {"server answers",
     [](World &w) {
       if (was_sent(*w.table.get(w.id))) w.server_answers(1);
     }},
    {"server fails",
     [](World &w) {
       Call &call = *w.table.get(w.id);
       if (call.exchange == nullptr) return;
       w.fail_call(call, code::internal_error, "it has crashed", BH_OUTCOME_ERROR);
     }},
    {"ask answered", [](World &w) { w.client_answers_ask(); }},
    {"repeated", [](World &w) { w.client_repeats(); }},
    {"cancelled",
     [](World &w) {
       const std::string text =
           R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"c"}})";
       mcp::Scan scan;
       mcp::ScanError error;
       REQUIRE(mcp::scan(text, &scan, &error));
       w.ends.cancel(*w.table.get(w.id), {text, &scan});
     }},
    {"session ends", [](World &w) { w.ends.end_session(w.session); }},
    {"server removed", [](World &w) { w.end_drained(*w.table.get(w.id), w.lane); }},
};

// Returns the expected outcome of an event in a stage: the new stage, or the beginning of the
// message that the client receives.
inline std::string expected_outcome(const std::string &stage, const std::string &what) {
  const std::string blocked_text = "MCP request blocked by policy (rule)";
  const std::string timed_out =
      "MCP request blocked by policy (policy-timeout): the policy did not respond within ";
  const std::string crashed = "tool call failed: it has crashed";
  // Events that are not listed leave the stage unchanged.
  static const std::map<std::string, std::map<std::string, std::string>> expected = {
      {"checking",
       {{"no duplicates", "at server"},
        {"duplicates",
         "MCP request blocked by policy: arguments contain an object with duplicate "
         "members"},
        {"time", timed_out}}},
      {"deciding",
       {{"allowed", "at server"},
        {"blocked", blocked_text + ": no"},
        {"asked", "approving"},
        {"allowed by old rules", blocked_text},
        {"time", timed_out}}},
      {"approving",
       {{"person: yes", "at server"},
        {"person: no", blocked_text + ": needs approval, which was denied"},
        {"person: yes, rules: no", blocked_text},
        {"input ends", blocked_text + ": needs approval, but the client closed its input"},
        {"time", blocked_text + ": needs approval, which was not given within "}}},
      {"recording",
       {{"committed", "at server"},
        {"committed, rules: no", blocked_text},
        {"time", "the gateway could not record the call within "}}},
      {"queued",
       {{"its turn", "at server"},
        {"its turn, rules: no", blocked_text},
        {"its turn, rules: yes", "at server"},
        {"time", "server \\"},
        {"server fails", crashed}}},
      {"at server",
       {{"time", "server \\"}, {"server answers", "result"}, {"server fails", crashed}}},
      {"suspended",
       {{"time", "server \\"},
        {"server answers", "result"},
        {"server fails", crashed},
        {"ask answered", "at server"}}},
      {"awaiting repeat",
       {{"time", "server \\"},
        {"server answers", "result"},
        {"server fails", crashed},
        {"repeated", "at server"},
        {"cancelled", "the call of this requestState has ended"}}},
      {"asking", {{"ask answered", "at server"}, {"time", "the input that server \\"}}},
      {"answer checking",
       {{"no duplicates", "result"},
        {"duplicates",
         "MCP response blocked by policy: the result contains an object with "
         "duplicate members"},
        {"time",
         "MCP response blocked by policy (policy-timeout): the policy did not respond "
         "within "}}},
      {"answer deciding",
       {{"allowed", "result"},
        {"allowed by old rules", "result"},
        {"blocked", "MCP response blocked by policy (rule): no"},
        {"asked",
         "MCP response blocked by policy (rule): needs approval, which is not supported "
         "for results"},
        {"time",
         "MCP response blocked by policy (policy-timeout): the policy did not respond "
         "within "}}},
  };
  if (what == "cancelled" && stage != "awaiting repeat") return "released";
  if (what == "session ends") return "silence";
  if (what == "server removed") return "tool call failed: it was removed";
  const auto &row = expected.at(stage);
  const auto at = row.find(what);
  return at == row.end() ? stage : at->second;
}

}  // namespace bulkhead
