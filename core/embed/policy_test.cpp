// Tests calls, results and lists for which a policy delays its verdict.
#include <catch2/catch.hpp>
#include <string>

#include "embed/policy_world.hpp"

using namespace bulkhead;

namespace {

constexpr std::uint32_t decides = BH_POLICY_DECIDES | BH_POLICY_READS_ARGUMENTS;
constexpr std::uint32_t observes = BH_POLICY_READS_RESULTS;
constexpr std::uint32_t filters = BH_POLICY_FILTERS_LISTS;

}  // namespace

TEST_CASE("a call that a delayed verdict allows is sent, unchanged or rewritten") {
  PolicyWorld w(decides);
  w.start();
  Client c(*w.host);
  c.call("1", "a__x", R"(,"arguments":{"n":1})");
  REQUIRE(w.judge.asked.size() == 1);
  CHECK(w.judge.last().server == "a");
  CHECK(w.judge.last().name == "x");
  CHECK(w.judge.last().text == R"({"n":1})");
  w.turn(20);
  CHECK_FALSE(w.sent_call());
  SECTION("unchanged") {
    w.judge.decided(w.judge.last().number, BH_VERDICT_ALLOW);
    REQUIRE(w.turn_until([&] { return w.sent_call(); }));
    CHECK(w.up.last("a").find(R"("arguments":{"n":1})") != std::string::npos);
  }
  SECTION("rewritten") {
    w.judge.decided(w.judge.last().number, BH_VERDICT_REWRITE, R"({"n":2})");
    REQUIRE(w.turn_until([&] { return w.sent_call(); }));
    CHECK(w.up.last("a").find(R"("arguments":{"n":2})") != std::string::npos);
  }
  w.answer("{}");
  CHECK(c.has(R"("id":1)"));
  CHECK(w.record().outcome == BH_OUTCOME_OK);
}

TEST_CASE("a call that a delayed verdict refuses is not sent, and is recorded with its rule") {
  PolicyWorld w(decides);
  w.start();
  Client c(*w.host);
  c.call("1", "a__x");
  const std::uint64_t number = w.judge.last().number;
  SECTION("blocked") {
    w.judge.decided(number, BH_VERDICT_BLOCK);
    REQUIRE(w.turn_until([&] { return c.has("blocked by policy (r1)"); }));
    CHECK(w.record().rule == "r1");
  }
  SECTION("an unknown verdict") {
    w.judge.decided(number, 77);
    REQUIRE(w.turn_until([&] { return c.has("unknown verdict"); }));
    CHECK(w.record().rule == "policy-failed");
  }
  SECTION("a rewrite that is not JSON") {
    w.judge.decided(number, BH_VERDICT_REWRITE, "{");
    REQUIRE(w.turn_until([&] { return c.has("not JSON"); }));
    CHECK(w.record().rule == "policy-failed");
  }
  CHECK_FALSE(w.sent_call());
  CHECK(w.record().outcome == BH_OUTCOME_REFUSED);
  CHECK(w.record().server == "a");
  // A second verdict for the same request is dropped.
  w.judge.decided(number, BH_VERDICT_ALLOW);
  w.turn(20);
  CHECK_FALSE(w.sent_call());
  CHECK(c.got.size() == 1);
}

TEST_CASE(
    "a policy cannot add arguments to a call without arguments, so the record matches the call") {
  PolicyWorld w(decides);
  w.start();
  Client c(*w.host);
  SECTION("immediately") {
    w.judge.judge = [](const FakeJudge::Asked &, bh_verdict *out) -> bh_status {
      out->verdict = BH_VERDICT_REWRITE;
      out->rule = bh::str("r1");
      out->arguments = bh::str(R"({"n":2})");
      return BH_OK;
    };
    c.call("1", "a__x");
  }
  SECTION("by a delayed verdict") {
    c.call("1", "a__x");
    w.judge.decided(w.judge.last().number, BH_VERDICT_REWRITE, R"({"n":2})");
  }
  REQUIRE(w.turn_until([&] { return c.has("no arguments to rewrite"); }));
  CHECK_FALSE(w.sent_call());
  CHECK(w.record().outcome == BH_OUTCOME_REFUSED);
}

TEST_CASE("a call without a verdict is refused when the time limit expires") {
  PolicyWorld w(decides);
  w.profile.limits.policy_timeout_ms = 60;
  w.start();
  Client c(*w.host);
  c.call("1", "a__x");
  const std::uint64_t number = w.judge.last().number;
  REQUIRE(w.turn_until([&] { return !c.got.empty(); }));
  CHECK(c.has("blocked by policy (policy-timeout)"));
  CHECK(w.record().rule == "policy-timeout");
  CHECK(w.record().outcome == BH_OUTCOME_REFUSED);
  w.judge.decided(number, BH_VERDICT_ALLOW);
  w.turn(20);
  CHECK_FALSE(w.sent_call());
  CHECK(c.got.size() == 1);
}

TEST_CASE("a late verdict does not shorten the server's time-out") {
  PolicyWorld w(decides);
  w.profile.limits.policy_timeout_ms = 60'000;
  w.profile.limits.call_timeout_ms = 100;
  w.start();
  Client c(*w.host);
  c.call("1", "a__x");
  w.turn(250);
  CHECK(c.got.empty());
  w.judge.decided(w.judge.last().number, BH_VERDICT_ALLOW);
  REQUIRE(w.turn_until([&] { return w.sent_call(); }));
  REQUIRE(w.turn_until([&] { return c.has("did not respond to"); }));
}

TEST_CASE("a policy that throws or fails refuses the call") {
  PolicyWorld w(decides | observes);
  w.start();
  Client c(*w.host);
  w.judge.judge = [](const FakeJudge::Asked &, bh_verdict *) -> bh_status { throw 1; };
  c.call("1", "a__x");
  CHECK(c.has("policy-failed"));
  w.judge.judge = [](const FakeJudge::Asked &asked, bh_verdict *) -> bh_status {
    if (asked.look == "observe") throw 1;
    return BH_OK;
  };
  c.call("2", "a__x");
  w.answer(R"({"secret":1})");
  CHECK(c.has(R"("id":2,"error")"));
  CHECK(c.has("MCP response blocked by policy (policy-failed)"));
  CHECK_FALSE(c.has("secret"));
}

TEST_CASE("a result waits for its verdict without delaying other calls") {
  PolicyWorld w(observes);
  w.profile.servers[0].max_in_flight = 1;
  w.start();
  Client c(*w.host);
  c.call("1", "a__x");
  c.call("2", "a__y");
  w.answer(R"({"secret":1})");
  REQUIRE(w.judge.last().look == "observe");
  const FakeJudge::Asked first = w.judge.last();
  CHECK(first.text == R"({"secret":1})");
  CHECK(c.got.empty());
  // While a result waits for its verdict, it does not occupy the server's call slot.
  REQUIRE(w.up.last("a").find(R"("name":"y")") != std::string::npos);
  w.judge.judge = nullptr;
  w.answer(R"({"two":2})");
  REQUIRE(c.has(R"("two":2)"));
  CHECK(c.got.size() == 1);
  c.got.clear();
  SECTION("allowed") {
    w.judge.decided(first.number, BH_VERDICT_ALLOW);
    REQUIRE(w.turn_until([&] { return !c.got.empty(); }));
    CHECK(c.got[0] == R"({"jsonrpc":"2.0","id":1,"result":{"secret":1}})");
  }
  SECTION("rewritten") {
    w.judge.decided(first.number, BH_VERDICT_REWRITE, R"({"public":1})");
    REQUIRE(w.turn_until([&] { return !c.got.empty(); }));
    CHECK(c.got[0] == R"({"jsonrpc":"2.0","id":1,"result":{"public":1}})");
  }
  SECTION("blocked") {
    w.judge.decided(first.number, BH_VERDICT_BLOCK);
    REQUIRE(w.turn_until([&] { return !c.got.empty(); }));
    CHECK(c.has("MCP response blocked by policy (r1)"));
    CHECK_FALSE(c.has("secret"));
  }
  SECTION("the connection is lost before the verdict") {
    w.up.fall("a", "killed by the test");
    w.turn(20);
    CHECK(c.got.empty());
    w.judge.decided(first.number, BH_VERDICT_ALLOW);
    REQUIRE(w.turn_until([&] { return c.has(R"("secret":1)"); }));
  }
  SECTION("cancelled before the verdict") {
    c.end->send(R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}})");
    w.judge.decided(first.number, BH_VERDICT_ALLOW);
    w.turn(30);
    CHECK(c.got.empty());
    CHECK(w.host->status().in_flight == 0);
  }
  SECTION("the client disconnects before the verdict") {
    c.end.reset();
    CHECK(w.host->status().in_flight == 0);
    w.judge.decided(first.number, BH_VERDICT_ALLOW);
    w.turn(30);
    CHECK(c.got.empty());
  }
  SECTION("a reload removes the server before the verdict") {
    Profile next = w.profile;
    next.servers = {server("b")};
    REQUIRE(w.host->apply(next).has_value());
    REQUIRE(w.turn_until([&] { return w.host->drained(); }));
    w.judge.decided(first.number, BH_VERDICT_ALLOW);
    REQUIRE(w.turn_until([&] { return c.has(R"("secret":1)"); }));
  }
}

TEST_CASE("a result without a verdict is withheld when the time limit expires") {
  PolicyWorld w(observes);
  w.profile.limits.policy_timeout_ms = 60;
  w.start();
  Client c(*w.host);
  c.call("1", "a__x");
  w.answer(R"({"secret":1})");
  REQUIRE(w.turn_until([&] { return !c.got.empty(); }));
  CHECK(c.has("MCP response blocked by policy (policy-timeout)"));
  CHECK(w.record().rule == "policy-timeout");
  CHECK(w.record().server == "a");
}

TEST_CASE("a reload changes the limit of data waiting for several policies") {
  PolicyWorld w(decides);
  w.profile.policies.push_back(use("fake-policy"));
  w.profile.policies.back().id = "second";
  w.profile.limits.policy_waiting_bytes = 1024;
  w.start();
  w.profile.limits.policy_waiting_bytes = 1u << 20;
  const auto report = w.host->apply(w.profile);
  REQUIRE(report.has_value());
  CHECK(report->settings == std::vector<std::string>{"limits.policy_waiting_bytes"});
  Client c(*w.host);
  const std::string large = R"(,"arguments":{"t":")" + std::string(700, 'x') + "\"}";
  for (const char *id : {"1", "2", "3"}) c.call(id, "a__x", large);
  CHECK(c.got.empty());
  CHECK(w.judge.asked.size() == 3);
}

TEST_CASE("data waiting for a policy is limited") {
  PolicyWorld w(decides | observes);
  w.profile.limits.policy_waiting_bytes = 1024;
  w.start();
  Client c(*w.host);
  const std::string large = R"(,"arguments":{"t":")" + std::string(700, 'x') + "\"}";
  c.call("1", "a__x", large);
  CHECK(c.got.empty());
  c.call("2", "a__x", large);
  CHECK(c.has("limits.policy_waiting_bytes"));
  c.got.clear();
  // Requests that have finished do not count towards the limit.
  w.judge.decided(w.judge.asked.front().number, BH_VERDICT_BLOCK);
  REQUIRE(w.turn_until([&] { return c.has(R"("id":1)"); }));
  c.got.clear();
  w.judge.judge = [](const FakeJudge::Asked &asked, bh_verdict *) {
    return asked.look == "observe" ? BH_PENDING : BH_OK;
  };
  c.call("3", "a__x");
  w.answer(R"({"t":")" + std::string(2000, 'x') + "\"}");
  CHECK(c.has("MCP response blocked by policy (policy-failed)"));
  CHECK(w.host->status().in_flight == 0);
}

TEST_CASE("a list is sent once all its items have a verdict") {
  PolicyWorld w(filters);
  w.start();
  Client c(*w.host);
  c.end->send(list_tools);
  CHECK(c.got.empty());
  REQUIRE(w.judge.asked.size() == 3);
  const auto asked = w.judge.asked;
  SECTION("verdicts out of order") {
    w.judge.filtered(asked[2].number, true);
    w.judge.filtered(asked[1].number, false);
    w.judge.filtered(asked[1].number, true);  // a second verdict on the same item is dropped
    w.turn(20);
    CHECK(c.got.empty());
    w.judge.filtered(asked[0].number, true);
    REQUIRE(w.turn_until([&] { return !c.got.empty(); }));
    CHECK(c.has("a__x"));
    CHECK_FALSE(c.has("a__y"));
    CHECK(c.has("b__x"));
    // Verdicts on a list stay valid until the list or the rules change, so the policy is not asked
    // again.
    c.got.clear();
    c.end->send(list_tools);
    CHECK(c.has("a__x"));
    CHECK(w.judge.asked.size() == 3);
    // After the rules change, all items are evaluated again.
    c.got.clear();
    w.judge.judge = nullptr;
    w.judge.changed();
    REQUIRE(w.turn_until([&] { return c.has("tools/list_changed"); }));
    c.end->send(list_tools);
    CHECK(c.has("a__y"));
  }
  SECTION("the rules change before the last verdict") {
    w.judge.filtered(asked[0].number, true);
    w.judge.changed();
    REQUIRE(w.turn_until([&] { return w.judge.asked.size() == 6; }));
    // These verdicts were given under the previous rules, so they are ignored.
    for (const auto &one : asked) w.judge.filtered(one.number, true);
    w.turn(20);
    CHECK(c.got.empty());
    for (std::size_t i = 3; i < 6; ++i) w.judge.filtered(w.judge.asked[i].number, i == 4);
    REQUIRE(w.turn_until([&] { return !c.got.empty(); }));
    CHECK(c.has("a__y"));
    CHECK_FALSE(c.has("a__x"));
  }
  SECTION("cancelled before the last verdict") {
    c.end->send(R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":9}})");
    for (const auto &one : asked) w.judge.filtered(one.number, true);
    w.turn(20);
    CHECK_FALSE(c.has("\"tools\""));
  }
  SECTION("the client disconnects before the last verdict") {
    c.end.reset();
    for (const auto &one : asked) w.judge.filtered(one.number, true);
    w.turn(20);
  }
  SECTION("an unknown number") {
    w.judge.filtered(0, true);
    w.judge.filtered(~0ull, true);
    w.judge.filtered(asked[0].number + 1000, true);
    w.turn(20);
    CHECK(c.got.empty());
  }
}

TEST_CASE("items without a verdict are hidden until the next list when the time limit expires") {
  PolicyWorld w(filters);
  w.profile.limits.policy_timeout_ms = 60;
  w.start();
  Client c(*w.host);
  c.end->send(list_tools);
  w.judge.filtered(w.judge.asked[1].number, true);
  REQUIRE(w.turn_until([&] { return !c.got.empty(); }));
  CHECK(c.has("a__y"));
  CHECK_FALSE(c.has("a__x"));
  CHECK_FALSE(c.has("b__x"));
  c.got.clear();
  w.judge.judge = nullptr;
  c.end->send(list_tools);
  CHECK(c.has("a__x"));
}

TEST_CASE("a repeated handshake keeps the session's servers and their calls") {
  PolicyWorld w(decides);
  w.profile.servers[0].session = SessionScope::per_client;
  w.start();
  RawClient g(*w.host);
  g.initialize("{}");
  REQUIRE(w.turn_until([&] { return w.host->settled(); }));
  const std::size_t lanes = w.up.lanes.size();
  g.call_x();
  REQUIRE(w.judge.asked.size() == 1);
  g.initialize(R"({"sampling":{}})");
  CHECK(w.up.lanes.size() == lanes);
  w.judge.decided(w.judge.last().number, BH_VERDICT_ALLOW);
  REQUIRE(w.turn_until([&] { return w.sent_call(); }));
  w.answer("{}");
  CHECK(g.has(R"({"jsonrpc":"2.0","id":1,"result":{}})"));
}

TEST_CASE("a call fails if its server is released before the verdict") {
  PolicyWorld w(decides);
  w.profile.limits.policy_timeout_ms = 60'000;
  w.profile.limits.idle_view_ms = 30;
  w.start();
  RawClient g(*w.host);
  g.initialize(R"({"sampling":{}})");
  REQUIRE(w.turn_until([&] { return w.host->settled(); }));
  g.call_x();
  REQUIRE(w.judge.asked.size() == 1);
  const std::uint64_t number = w.judge.last().number;
  g.initialize("{}");  // the session switches to other lanes, and the previous lanes are released
  REQUIRE(w.turn_until([&] { return g.has("the call has not run"); }));
  w.judge.decided(number, BH_VERDICT_ALLOW);
  w.turn(20);
  CHECK_FALSE(w.sent_call());
}
