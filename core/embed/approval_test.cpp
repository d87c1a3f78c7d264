// Tests calls that require human approval: who can approve them, and how approval requests are
// resolved.
#include <algorithm>
#include <catch2/catch.hpp>
#include <set>
#include <string>

#include "bulkhead/cpp/basics.hpp"
#include "bulkhead/cpp/json.hpp"
#include "embed/fake_policy.hpp"
#include "embed/fake_world.hpp"
#include "embed/judged_world.hpp"

using namespace bulkhead;

namespace {

bh_status asks(const FakeJudge::Asked &, bh_verdict *out) {
  out->verdict = BH_VERDICT_ASK;
  out->rule = bh::str("r1");
  out->reason = bh::str("because");
  return BH_OK;
}

struct ApprovalWorld : JudgedWorld {
  std::vector<std::string> outcomes;

  ApprovalWorld() {
    judge.judge = asks;
    profile.limits.approval_timeout_ms = 60'000;
    profile.approval.api = true;
  }
  void start() {
    HostOptions options;
    options.on_approval = [this](const ApprovalOutcome &outcome) {
      outcomes.push_back(std::string(to_string(outcome.end)) + " " +
                         std::string(to_string(outcome.surface)) + " " + to_string(outcome.scope));
    };
    JudgedWorld::start(std::move(options));
  }
  // Waits until all lanes are open. The host opens new lanes when a client declares other
  // capabilities than the earlier clients.
  void settle() {
    REQUIRE(turn_until([&] { return host->settled(); }));
  }
  std::size_t sent_calls() {
    std::size_t n = 0;
    for (const std::string &message : up.lane("a").sent) {
      n += message.find("tools/call") != std::string::npos;
    }
    return n;
  }
  bool sends(std::size_t n) {
    return turn_until([&] { return sent_calls() == n; });
  }
  std::vector<ApprovalQuestion> pending() { return host->approvals(0).questions; }
  std::vector<ApprovalGrant> grants() { return host->approvals(0).grants; }
  // Returns true if the client's tool list contains `text`.
  bool lists(Client &c, std::string_view text) {
    c.got.clear();
    c.end->send(list_tools);
    turn();
    return c.has(text);
  }
  Result<void> answer(const std::string &id, bool allow, ApprovalScope scope = {}) {
    return host->answer_approval({id, allow, scope, ApprovalSurface::terminal});
  }
  void result() {
    up.send("a",
            R"({"jsonrpc":"2.0","id":)" + FakeUpstreams::id_of(up.last("a")) + R"(,"result":{}})");
  }
  const FakeJudge::Kept &record() {
    REQUIRE(turn_until([&] { return !judge.records.empty(); }));
    return judge.records.back();
  }
};

constexpr ApprovalScope session_scope{ApprovalScope::Kind::session, 0};
constexpr const char *tools_changed =
    R"({"jsonrpc":"2.0","method":"notifications/tools/list_changed"})";
constexpr ApprovalScope tool_scope{ApprovalScope::Kind::session, 0, true};

// Returns the ID of the elicitation request that the client has received, as JSON text. Returns an
// empty string if there is no such request.
std::string form_id(const Client &c) {
  for (const std::string &m : c.got) {
    if (m.find("elicitation/create") == std::string::npos) continue;
    const std::size_t at = m.find("\"id\":") + 5;
    return m.substr(at, m.find(',', at) - at);
  }
  return {};
}

}  // namespace

TEST_CASE("a call is rejected immediately with a reason if there is no approver") {
  ApprovalWorld w;
  w.profile.approval.api = false;
  w.start();
  // The client supports elicitation, but the profile does not enable it.
  Client c(*w.host, R"({"elicitation":{}})");
  w.settle();
  c.call("1", "a__x");
  CHECK(c.has("blocked by policy (r1): needs approval, but no approval surface is available"));
  CHECK(c.has("because"));
  CHECK(w.pending().empty());
  CHECK(w.sent_calls() == 0);
  CHECK(w.record().outcome == BH_OUTCOME_REFUSED);
  CHECK(w.record().rule == "r1");
  // A program that watches approval requests counts as an approver.
  c.got.clear();
  w.host->approvals(1000);
  c.call("2", "a__x");
  CHECK(c.got.empty());
  CHECK(w.pending().size() == 1);
}

TEST_CASE("session numbers differ between gateways and between runs") {
  std::set<std::uint64_t> sessions;
  for (int i = 0; i < 3; ++i) {
    ApprovalWorld w;
    w.start();
    Client c(*w.host);
    c.call("1", "a__x");
    sessions.insert(w.pending().at(0).session);
    // Session numbers must be exactly representable as doubles, because some programs store all
    // numbers that way.
    CHECK(*sessions.rbegin() < (1ull << 53));
  }
  CHECK(sessions.size() > 1);
}

TEST_CASE("an approval request describes the call, and the call waits until it is resolved") {
  ApprovalWorld w;
  w.start();
  Client c(*w.host);
  c.call("1", "a__x", R"(,"arguments":{"path":"/x","token":"t0ps3cret"})");
  w.turn(20);
  CHECK(w.sent_calls() == 0);
  const auto pending = w.pending();
  REQUIRE(pending.size() == 1);
  const ApprovalQuestion &q = pending[0];
  CHECK(q.server == "a");
  CHECK(q.name == "x");
  CHECK(q.method == "tools/call");
  CHECK(q.arguments == R"({"path":"/x","token":"***"})");
  CHECK(q.rule == "r1");
  CHECK(q.reason == "because");
  CHECK(q.transport == "local");
  CHECK(q.principal == "local");
  CHECK(q.expires_unix_ms - q.asked_unix_ms == 60'000);
  SECTION("allowed: the call is sent unchanged") {
    REQUIRE(w.answer(q.id, true).has_value());
    REQUIRE(w.sends(1));
    CHECK(w.up.last("a").find("t0ps3cret") != std::string::npos);
    w.result();
    REQUIRE(c.has(R"("id":1,"result":{})"));
    CHECK(w.record().outcome == BH_OUTCOME_OK);
    CHECK(w.record().rule == "r1");
    CHECK(w.outcomes == std::vector<std::string>{"allowed terminal once"});
    SECTION("only once") {
      c.call("2", "a__x", R"(,"arguments":{"path":"/x","token":"t0ps3cret"})");
      CHECK(w.pending().size() == 1);
    }
  }
  SECTION("denied: the call is never sent") {
    REQUIRE(w.answer(q.id, false).has_value());
    CHECK(c.has("blocked by policy (r1): needs approval, which was denied: because"));
    CHECK(w.record().outcome == BH_OUTCOME_REFUSED);
    CHECK(w.outcomes == std::vector<std::string>{"denied terminal once"});
  }
  CHECK(w.answer(q.id, true).error().code == BH_E_NOT_FOUND);
}

TEST_CASE("an invalid response to an approval request changes nothing") {
  ApprovalWorld w;
  w.start();
  Client c(*w.host);
  c.call("1", "a__x");
  const std::string id = w.pending().at(0).id;
  CHECK(w.answer(id, true, {ApprovalScope::Kind::minutes, 0}).error().code == BH_E_INVALID);
  CHECK(w.answer(id.substr(1), true).error().code == BH_E_NOT_FOUND);
  CHECK(w.answer("", true).error().code == BH_E_NOT_FOUND);
  CHECK(w.pending().size() == 1);
  CHECK(w.sent_calls() == 0);
}

TEST_CASE("an unresolved approval request expires, and its call is rejected") {
  ApprovalWorld w;
  w.profile.limits.approval_timeout_ms = 60;
  w.start();
  Client c(*w.host);
  c.call("1", "a__x");
  const std::string id = w.pending().at(0).id;
  REQUIRE(w.turn_until([&] { return c.has("which was not given within 60 ms"); }));
  CHECK(w.pending().empty());
  CHECK(w.answer(id, true).error().code == BH_E_NOT_FOUND);
  CHECK(w.sent_calls() == 0);
  CHECK(w.outcomes == std::vector<std::string>{"expired none once"});
}

TEST_CASE("approval for a session applies to the same call only; other calls require approval") {
  ApprovalWorld w;
  w.start();
  Client c(*w.host), other(*w.host);
  c.call("1", "a__x", R"(,"arguments":{"n":1})");
  REQUIRE(w.answer(w.pending().at(0).id, true, session_scope).has_value());
  REQUIRE(w.sends(1));
  c.call("2", "a__x", R"(,"arguments":{"n":1})");
  REQUIRE(w.sends(2));
  CHECK(w.pending().empty());
  c.call("4", "a__x", R"(,"_meta":{"progressToken":1},"arguments":{"n":1})");
  REQUIRE(w.sends(3));
  SECTION("other arguments") {
    c.call("3", "a__x", R"(,"arguments":{"n":2})");
  }
  SECTION("other _meta members") {
    c.call("3", "a__x", R"(,"_meta":{"progressToken":1,"force":"yes"},"arguments":{"n":1})");
    CHECK(w.pending().at(0).meta == R"({"force":"yes"})");
  }
  SECTION("another tool") {
    c.call("3", "a__y", R"(,"arguments":{"n":1})");
  }
  SECTION("another session") {
    other.call("3", "a__x", R"(,"arguments":{"n":1})");
  }
  SECTION("another rule requires approval") {
    w.judge.judge = [](const FakeJudge::Asked &asked, bh_verdict *out) {
      asks(asked, out);
      out->rule = bh::str("r2");
      return bh_status{BH_OK};
    };
    c.call("3", "a__x", R"(,"arguments":{"n":1})");
  }
  CHECK(w.pending().size() == 1);
  w.turn(20);
  CHECK(w.sent_calls() == 3);
}

TEST_CASE("approving a tool with any arguments applies only to that tool, session and rule") {
  ApprovalWorld w;
  w.start();
  Client c(*w.host), other(*w.host);
  c.call("1", "a__x", R"(,"arguments":{"n":1})");
  const std::string id = w.pending().at(0).id;
  const bool minutes = GENERATE(false, true);
  const ApprovalScope scope =
      minutes ? ApprovalScope{ApprovalScope::Kind::minutes, 5, true} : tool_scope;
  REQUIRE(w.answer(id, true, scope).has_value());
  REQUIRE(w.sends(1));
  c.call("2", "a__x", R"(,"arguments":{"n":2})");
  REQUIRE(w.sends(2));
  c.call("3", "a__x", R"(,"_meta":{"force":1})");
  REQUIRE(w.sends(3));
  CHECK(w.pending().empty());
  REQUIRE(w.grants().size() == 1);
  CHECK(w.grants()[0].question.id == id);
  CHECK(w.grants()[0].question.name == "x");
  CHECK(to_string(w.grants()[0].scope) == to_string(scope));
  std::size_t left = 1;
  std::string end;
  SECTION("another tool") {
    c.call("4", "a__y", R"(,"arguments":{"n":1})");
  }
  SECTION("a tool with the same name on another server") {
    c.call("4", "b__x", R"(,"arguments":{"n":1})");
  }
  SECTION("another session") {
    other.call("4", "a__x", R"(,"arguments":{"n":1})");
  }
  SECTION("members of params other than the arguments") {
    c.call("4", "a__x", R"(,"arguments":{"n":1},"task":{"ttl":5})");
  }
  SECTION("another rule requires approval") {
    w.judge.judge = [](const FakeJudge::Asked &asked, bh_verdict *out) {
      asks(asked, out);
      out->rule = bh::str("r2");
      return bh_status{BH_OK};
    };
    c.call("4", "a__x", R"(,"arguments":{"n":1})");
  }
  SECTION("changed rules, although the same rule requires approval") {
    w.judge.changed();
    w.turn();
    c.call("4", "a__x", R"(,"arguments":{"n":1})");
    left = 0;
    end = "withdrawn none ";
  }
  SECTION("a changed definition that is changed back") {
    const std::string former = w.up.tools["a"];
    w.up.tools["a"] = R"([{"name":"x","description":"new"},{"name":"y"}])";
    w.up.send("a", tools_changed);
    REQUIRE(w.turn_until([&] { return w.lists(c, "new"); }));
    c.call("4", "a__x", R"(,"arguments":{"n":1})");
    REQUIRE(w.pending().size() == 1);
    REQUIRE(w.answer(w.pending()[0].id, false).has_value());
    w.up.tools["a"] = former;
    w.up.send("a", tools_changed);
    REQUIRE(w.turn_until([&] { return !w.lists(c, "new"); }));
    c.call("5", "a__x", R"(,"arguments":{"n":1})");
    left = 0;
    end = "withdrawn none ";
  }
  SECTION("a revoked approval") {
    ApprovalAnswer revoke{id, false, {}, ApprovalSurface::terminal, true};
    REQUIRE(w.host->answer_approval(revoke).has_value());
    CHECK(w.host->answer_approval(revoke).error().code == BH_E_NOT_FOUND);
    c.call("4", "a__x", R"(,"arguments":{"n":1})");
    left = 0;
    end = "withdrawn terminal ";
  }
  CHECK(w.pending().size() == 1);
  w.turn(20);
  CHECK(w.sent_calls() == 3);
  for (const std::string &message : w.up.lane("b").sent) {
    CHECK(message.find("tools/call") == std::string::npos);
  }
  CHECK(w.grants().size() == left);
  if (end.empty()) return;
  const auto ended = std::find(w.outcomes.begin(), w.outcomes.end(), end + to_string(scope));
  CHECK(ended != w.outcomes.end());
}

TEST_CASE("a tool approval does not apply after its rules are replaced") {
  ApprovalWorld w;
  w.start();
  Client c(*w.host);
  c.call("1", "a__x", R"(,"arguments":{"n":1})");
  w.judge.changed();
  w.turn();
  REQUIRE(w.answer(w.pending().at(0).id, true, tool_scope).has_value());
  REQUIRE(w.sends(1));
  CHECK(w.outcomes.back() == "allowed terminal once");
  CHECK(w.grants().empty());
  c.call("2", "a__x", R"(,"arguments":{"n":1})");
  CHECK(w.pending().size() == 1);
}

TEST_CASE("the resolution of an approval request is recorded") {
  ApprovalWorld w;
  w.judge.telemetry_needs = BH_TELEMETRY_EVENTS;
  w.start();
  Client c(*w.host);
  c.call("1", "a__x");
  const std::string id = w.pending().at(0).id;
  REQUIRE(w.answer(id, true, tool_scope).has_value());
  REQUIRE(w.host->answer_approval({id, false, {}, ApprovalSurface::api, true}).has_value());
  std::vector<std::string> details;
  REQUIRE(w.turn_until([&] {
    details.clear();
    for (const auto &one : w.judge.records) {
      if (one.kind != BH_RECORD_APPROVAL) continue;
      details.push_back(one.detail);
      CHECK(one.claimed_name == "t");
    }
    return details.size() == 3;
  }));
  CHECK(bh::json::member_text(details[1], "status") == "approved");
  CHECK(bh::json::member_text(details[1], "scope") == "tool for session");
  CHECK(bh::json::member_text(details[2], "id") == id);
  CHECK(bh::json::member_text(details[2], "status") == "withdrawn");
  CHECK(bh::json::member_text(details[2], "surface") == "api");
  CHECK(bh::json::member_text(details[2], "scope") == "tool for session");
}

TEST_CASE("a remembered approval applies only to the server program for which it was given") {
  ApprovalWorld w;
  w.profile.limits.grace_ms = 2000;
  w.start();
  Client c(*w.host);
  const ApprovalScope scope =
      GENERATE(true, false) ? session_scope : ApprovalScope{ApprovalScope::Kind::minutes, 5};
  c.call("1", "a__x");
  SECTION("approved before the reload") {
    REQUIRE(w.answer(w.pending().at(0).id, true, scope).has_value());
    REQUIRE(w.sends(1));
    w.result();
  }
  Profile next = w.profile;
  SECTION("if another server has changed, the approval remains valid") {
    REQUIRE(w.answer(w.pending().at(0).id, true, scope).has_value());
    REQUIRE(w.sends(1));
    w.result();
    next.servers[1].args = {"--new"};
    REQUIRE(w.host->apply(next).has_value());
    c.call("2", "a__x");
    REQUIRE(w.sends(2));
    CHECK(w.pending().empty());
    return;
  }
  next.servers[0].args = {"--new"};
  REQUIRE(w.host->apply(next).has_value());
  // The pending call was made before the server's program was replaced, so approving it does not
  // cover later calls.
  if (!w.pending().empty()) {
    REQUIRE(w.answer(w.pending().at(0).id, true, scope).has_value());
    w.turn(20);
  }
  REQUIRE(w.turn_until([&] { return w.status("a").state == ServerState::ready; }));
  c.call("2", "a__x");
  CHECK(w.pending().size() == 1);
  w.turn(20);
  CHECK(w.sent_calls() == 0);  // no call was sent on the new connection
}

TEST_CASE("a call is evaluated by the current rules when it is approved") {
  ApprovalWorld w;
  w.start();
  Client c(*w.host);
  c.call("1", "a__x", R"(,"arguments":{"n":1})");
  const std::string id = w.pending().at(0).id;
  SECTION("one rule now blocks") {
    w.judge.judge = [](const FakeJudge::Asked &, bh_verdict *out) {
      out->verdict = BH_VERDICT_BLOCK;
      out->rule = bh::str("r9");
      return bh_status{BH_OK};
    };
    REQUIRE(w.answer(id, true).has_value());
    CHECK(c.has("blocked by policy (r9)"));
    w.turn(20);
    CHECK(w.sent_calls() == 0);
    CHECK(w.record().rule == "r9");
  }
  SECTION("another rule now requires approval") {
    w.judge.judge = [](const FakeJudge::Asked &asked, bh_verdict *out) {
      asks(asked, out);
      out->rule = bh::str("r2");
      return bh_status{BH_OK};
    };
    REQUIRE(w.answer(id, true).has_value());
    w.turn(20);
    CHECK(w.sent_calls() == 0);
    REQUIRE(w.pending().size() == 1);
    CHECK(w.pending()[0].rule == "r2");
    CHECK(w.pending()[0].id != id);
    REQUIRE(w.answer(w.pending()[0].id, true).has_value());
    REQUIRE(w.sends(1));
  }
  SECTION("one rule now rewrites") {
    w.judge.judge = [](const FakeJudge::Asked &, bh_verdict *out) {
      out->verdict = BH_VERDICT_REWRITE;
      out->arguments = bh::str(R"({"n":7})");
      return bh_status{BH_OK};
    };
    REQUIRE(w.answer(id, true).has_value());
    REQUIRE(w.sends(1));
    CHECK(w.up.last("a").find(R"("arguments":{"n":7})") != std::string::npos);
  }
  SECTION("the policy's verdict is now delayed") {
    w.judge.judge = [](const FakeJudge::Asked &, bh_verdict *) { return bh_status{BH_PENDING}; };
    REQUIRE(w.answer(id, true).has_value());
    w.turn(20);
    CHECK(w.sent_calls() == 0);
    SECTION("the same rule requires approval") {
      w.judge.decided(w.judge.last().number, BH_VERDICT_ASK);
      REQUIRE(w.sends(1));
    }
    SECTION("blocked") {
      w.judge.decided(w.judge.last().number, BH_VERDICT_BLOCK);
      REQUIRE(w.turn_until([&] { return c.has("blocked by policy (r1)"); }));
      CHECK(w.sent_calls() == 0);
    }
  }
  // Both evaluations belong to the same call, so the second one has BH_REQUEST_APPROVED and
  // BH_REQUEST_AGAIN.
  REQUIRE(w.judge.asked.size() >= 2);
  CHECK(w.judge.asked[0].flags == 0);
  CHECK(w.judge.asked[1].flags == (BH_REQUEST_APPROVED | BH_REQUEST_AGAIN));
  CHECK(w.judge.asked[1].number == w.judge.asked[0].number);
}

TEST_CASE("each of several rules that require approval can require it again") {
  ApprovalWorld w;
  static const char *rule = nullptr;
  rule = "r1, p1";
  w.judge.judge = [](const FakeJudge::Asked &asked, bh_verdict *out) {
    asks(asked, out);
    out->rule = bh::str(rule);
    return bh_status{BH_OK};
  };
  w.start();
  Client c(*w.host);
  c.call("1", "a__x");
  REQUIRE(w.pending().size() == 1);
  CHECK(w.pending()[0].rule == "r1, p1");
  SECTION("the call is sent if only named rules require approval again") {
    for (const char *one : {"r1", "p1", "p1, r1"}) {
      INFO(one);
      const std::size_t before = w.sent_calls();
      rule = "r1, p1";
      if (before > 0) c.call(std::to_string(before + 1), "a__x");
      rule = one;
      REQUIRE(w.answer(w.pending().at(0).id, true).has_value());
      REQUIRE(w.sends(before + 1));
      CHECK(w.pending().empty());
    }
  }
  SECTION("a rule that the approval did not name requires a new approval") {
    for (const char *one : {"r2", "r1, p2", "r", "r1, p1, r2", "r1,"}) {
      INFO(one);
      rule = one;
      REQUIRE(w.answer(w.pending().at(0).id, true).has_value());
      w.turn(20);
      CHECK(w.sent_calls() == 0);
      REQUIRE(w.pending().size() == 1);
      CHECK(w.pending()[0].rule == one);
    }
  }
}

TEST_CASE("a delayed verdict can require approval") {
  ApprovalWorld w;
  w.judge.judge = [](const FakeJudge::Asked &, bh_verdict *) { return bh_status{BH_PENDING}; };
  w.start();
  Client c(*w.host);
  c.call("1", "a__x");
  w.judge.decided(w.judge.last().number, BH_VERDICT_ASK);
  REQUIRE(w.turn_until([&] { return w.pending().size() == 1; }));
  w.judge.judge = asks;
  REQUIRE(w.answer(w.pending()[0].id, true).has_value());
  REQUIRE(w.sends(1));
}

TEST_CASE("cancelling a call resolves its approval request") {
  ApprovalWorld w;
  w.start();
  {
    Client c(*w.host);
    c.call("1", "a__x");
    c.call("2", "a__x");
    REQUIRE(w.pending().size() == 2);
    c.end->send(R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}})");
    CHECK(w.pending().size() == 1);
    CHECK(w.outcomes == std::vector<std::string>{"withdrawn none once"});
  }
  CHECK(w.pending().empty());
  CHECK(w.outcomes.size() == 2);
  w.turn(20);
  CHECK(w.sent_calls() == 0);
}

TEST_CASE(
    "calls that wait for approval do not count towards the limits of the server or the session") {
  ApprovalWorld w;
  w.profile.limits.in_flight_per_session = 2;
  for (ServerDef &def : w.profile.servers) def.max_in_flight = 1;
  w.profile.limits.approvals_per_session = 5;
  w.judge.judge = [](const FakeJudge::Asked &asked, bh_verdict *out) {
    return asked.name == "x" ? asks(asked, out) : bh_status{BH_OK};
  };
  w.start();
  Client c(*w.host);
  for (int i = 1; i <= 5; ++i) c.call(std::to_string(i), "a__x");
  CHECK(w.pending().size() == 5);
  CHECK(c.got.empty());
  c.call("6", "a__x");
  CHECK(c.has("too many calls of this client are already waiting (limits.approvals_per_session"));
  c.call("7", "a__y");
  REQUIRE(w.sends(1));
  w.result();
  CHECK(c.has(R"("id":7,"result")"));
  CHECK(w.pending().size() == 5);
}

TEST_CASE("removing a server resolves the approval requests of its calls") {
  ApprovalWorld w;
  w.profile.limits.drain_ms = 20;
  w.start();
  Client c(*w.host);
  c.call("1", "a__x");
  REQUIRE(w.pending().size() == 1);
  Profile next = w.profile;
  next.servers.erase(next.servers.begin());
  REQUIRE(w.host->apply(next).has_value());
  REQUIRE(w.turn_until([&] { return c.has("the request has not run"); }));
  CHECK(w.pending().empty());
  REQUIRE(w.turn_until([&] { return w.host->drained(); }));
}

TEST_CASE("a result cannot require approval") {
  ApprovalWorld w;
  w.judge.needs = BH_POLICY_READS_RESULTS;
  w.start();
  Client c(*w.host);
  c.call("1", "a__x");
  REQUIRE(w.sends(1));
  w.result();
  CHECK(c.has("MCP response blocked by policy (r1)"));
  CHECK(w.pending().empty());
}

// ---- elicitation -----------------------------------------------------------------------------

TEST_CASE("a client that supports elicitation approves its own calls if the profile allows it") {
  ApprovalWorld w;
  w.profile.approval = {true, false};
  w.start();
  const std::string revision = GENERATE(as<std::string>{}, "2025-06-18", "2025-11-25");
  Client c(*w.host, R"({"elicitation":{}})", revision);
  w.settle();
  c.call("1", "a__x", R"(,"arguments":{"n":1})");
  const std::string id = form_id(c);
  REQUIRE_FALSE(id.empty());
  const auto reply = [&](const std::string &rest) {
    c.end->send(R"({"jsonrpc":"2.0","id":)" + id + "," + rest + "}");
  };
  SECTION("allowed") {
    reply(R"("result":{"action":"accept","content":{"decision":"allow"}})");
    REQUIRE(w.sends(1));
    CHECK_FALSE(c.has("notifications/cancelled"));
    CHECK(w.outcomes == std::vector<std::string>{"allowed elicitation once"});
  }
  SECTION("allowed for the session") {
    reply(R"("result":{"action":"accept","content":{"decision":"allow","scope":"session"}})");
    REQUIRE(w.sends(1));
    c.got.clear();
    c.call("2", "a__x", R"(,"arguments":{"n":1})");
    REQUIRE(w.sends(2));
    CHECK(form_id(c).empty());
  }
  SECTION("denied") {
    reply(GENERATE(as<std::string>{}, R"("result":{"action":"decline"})",
                   R"("result":{"action":"cancel"})",
                   R"("result":{"action":"accept","content":{"decision":"deny"}})"));
    CHECK(c.has("which was denied"));
  }
  SECTION("the client cannot show the form") {
    reply(R"("error":{"code":-32601,"message":"no"})");
    CHECK(c.has("the client cannot be asked"));
  }
  SECTION("another approver responds first: the client's form is cancelled") {
    REQUIRE(w.answer(w.pending().at(0).id, true).has_value());
    REQUIRE(w.sends(1));
    CHECK(c.has(R"("method":"notifications/cancelled","params":{"requestId":)" + id));
    reply(R"("result":{"action":"decline"})");
    w.result();
    CHECK(c.has(R"("id":1,"result")"));
  }
  CHECK(w.pending().empty());
}

TEST_CASE("a client without form elicitation receives no approval form") {
  ApprovalWorld w;
  w.profile.approval = {true, false};
  w.start();
  Client old(*w.host, R"({"elicitation":{}})", "2025-03-26");
  Client urls(*w.host, R"({"elicitation":{"url":{}}})", "2025-11-25");
  Client none(*w.host, "{}", "2025-11-25");
  w.settle();
  for (Client *c : {&old, &urls, &none}) {
    c->call("1", "a__x");
    CHECK(form_id(*c).empty());
    CHECK(c->has("no approval surface is available"));
  }
}

TEST_CASE("a client's error does not resolve an approval request while there is another approver") {
  ApprovalWorld w;
  w.profile.approval = {true, true};
  w.start();
  Client c(*w.host, R"({"elicitation":{}})");
  w.settle();
  c.call("1", "a__x");
  c.end->send(R"({"jsonrpc":"2.0","id":)" + form_id(c) + R"(,"error":{"code":1,"message":"no"}})");
  REQUIRE(w.pending().size() == 1);
  REQUIRE(w.answer(w.pending()[0].id, true).has_value());
  REQUIRE(w.sends(1));
}

TEST_CASE("a client cannot respond to another client's form") {
  ApprovalWorld w;
  w.profile.approval = {true, false};
  w.start();
  Client c(*w.host, R"({"elicitation":{}})"), other(*w.host, R"({"elicitation":{}})");
  w.settle();
  c.call("1", "a__x");
  other.end->send(R"({"jsonrpc":"2.0","id":)" + form_id(c) +
                  R"(,"result":{"action":"accept","content":{"decision":"allow"}}})");
  w.turn(20);
  CHECK(w.sent_calls() == 0);
  CHECK(w.pending().size() == 1);
}
