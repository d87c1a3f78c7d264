// Test fixture for messages other than calls: one fake server, two clients, and the objects that
// forward messages between them.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "route/asks.hpp"
#include "route/fakes.hpp"
#include "route/notifications.hpp"
#include "route/protocol.hpp"
#include "route/subscriptions.hpp"

namespace bulkhead {

struct MessageWorld : FakeLaneHost, JudgedEvents::Outcome, Asks::Forms {
  FakePolicy policy;
  Gate gate;
  Names names{Naming{}};
  RouterCounters counters;
  Recorder recorder{*loop};
  Sessions sessions{1};
  FakeClient client;
  ClientAnswers answers{sessions, recorder, *loop, own_limits, counters, [] {}};
  CallTable calls;
  Deadlines deadlines{calls, table, *loop, {[](Call &) {}, [](Exchange &) {}}};
  Attribution attribution{sessions, table, *loop};
  WaitingBytes waiting{own_limits};
  DuplicateChecks checks{*loop, [](std::uint64_t, bool) {}};
  std::vector<JudgedEvent> passed_on, refusals;
  JudgedEvents judged{{gate, sessions, checks, waiting, recorder, counters, own_limits, *loop,
                       [](std::int32_t, std::string_view) {}, [](std::uint64_t, bool) {}, *this}};
  std::vector<std::uint64_t> forms_lost;
  std::uint32_t lost = 0;  // messages that could not be rewritten
  std::vector<std::pair<std::uint64_t, std::string>> forms_answered;
  Asks asks{1,
            {gate, attribution, sessions, calls, deadlines, answers, judged, counters, own_limits,
             *loop, [this](const Lane &, mcp::Method) { ++lost; }, *this}};
  Notifications notifications{{gate, attribution, table, sessions, answers, judged, counters,
                               [this](const Lane &, mcp::Method) { ++lost; }}};
  std::uint32_t changes = 0;
  Subscriptions subscriptions{{sessions, calls, judged, notifications, names, own_limits,
                               [this](const Session &) { ++changes; },
                               [this](const Lane &, mcp::Method) { ++lost; }}};
  Upstream upstream{*this, server_named("s")};
  FakeLane lane{*this, upstream, cap::sampling | cap::elicitation, 0};
  FakeLane lane_for_roots{*this, upstream, cap::sampling | cap::elicitation | cap::roots, 0};
  Session &first = client_of(), &second = client_of();

  MessageWorld() { gate.use(&policy_table, &policy); }
  void pass(const JudgedEvent &event) override { passed_on.push_back(event); }
  void refused(const JudgedEvent &event) override { refusals.push_back(event); }
  void form_answered(std::uint64_t call, const Message &m) override {
    forms_answered.emplace_back(call, std::string(m.bytes));
  }
  void form_lost(std::uint64_t call) override { forms_lost.push_back(call); }

  Session &client_of() {
    Session &s = open_session(sessions, client);
    s.caps = cap::sampling | cap::elicitation;
    s.initialized = true;
    return s;
  }
  // Creates a call from this client that has already been sent to the server.
  Call &call_of(Session &s, mcp::Method method = mcp::Method::tools_call) {
    return call_at(lane, s, method);
  }
  Call &call_at(FakeLane &at, Session &s, mcp::Method method = mcp::Method::tools_call) {
    Call &call = *calls.open();
    call.session = &s;
    call.request.reply = {s.handle, 7, 0};
    call.method = method;
    call.name = "tool";
    call.stage = Stage::at_server;
    Exchange &e = *table.open();
    e.call = &call;
    call.exchange = &e;
    at.attach(e);
    at.send_now(e);
    deadlines.arm(call, 1000);
    return call;
  }
  // Returns the messages of this kind that were sent to the client, oldest first.
  std::vector<std::string> sent_to(const Session &s, std::uint32_t kind) const {
    std::vector<std::string> out;
    for (const FakeClient::Sent &m : client.sent) {
      if (m.session == s.handle && m.kind == kind) out.push_back(m.text);
    }
    return out;
  }
};

// Progress whose token cannot be replaced: the range extends beyond the message, which ends with
// the token. No message from a scan has such a range.
struct BrokenProgress {
  explicit BrokenProgress(const std::string &token)
      : whole(R"({"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1,)"
              R"("message":"secret","progressToken":)" +
              token + "}}") {
    end = whole.scan.token.end++;
  }
  Message get() const { return {std::string_view(whole.text).substr(0, end), &whole.scan}; }

  Scanned whole;
  std::uint32_t end = 0;
};

inline std::string_view at(std::string_view text, std::initializer_list<std::string_view> path) {
  for (const std::string_view name : path) text = mcp::member(text, name);
  return text;
}

}  // namespace bulkhead
