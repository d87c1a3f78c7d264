// Tests messages that are too large to be checked for duplicate members immediately. They are
// checked on the thread pool, before a policy evaluates them or a response is sent.
#include <catch2/catch.hpp>
#include <string>

#include "embed/policy_world.hpp"

using namespace bulkhead;

namespace {

constexpr std::uint32_t decides = BH_POLICY_DECIDES | BH_POLICY_READS_ARGUMENTS;
constexpr std::uint32_t observes = BH_POLICY_READS_RESULTS;
constexpr const char *twins = R"(,"n":1,"n":2)";

std::string large(std::string_view more = "", std::size_t bytes = 300'000) {
  return R"({"text":")" + std::string(bytes, 'x') + "\"" + std::string(more) + "}";
}
std::string with_arguments(const std::string &arguments) {
  return R"(,"arguments":)" + arguments;
}
bh_status allow(const FakeJudge::Asked &, bh_verdict *out) {
  out->verdict = BH_VERDICT_ALLOW;
  return BH_OK;
}

}  // namespace

TEST_CASE("a policy evaluates large arguments in a later turn, while other calls continue") {
  PolicyWorld w(decides);
  w.judge.judge = allow;
  w.start();
  Client c(*w.host), other(*w.host);
  c.call("1", "a__x", with_arguments(large()));
  CHECK(w.judge.asked.empty());
  other.call("2", "a__x", R"(,"arguments":{"n":7})");
  REQUIRE(w.judge.asked.size() == 1);
  CHECK(w.judge.last().text == R"({"n":7})");
  REQUIRE(w.turn_until([&] { return w.judge.asked.size() == 2; }));
  CHECK(w.judge.last().text == large());
  REQUIRE(w.turn_until([&] { return w.up.last("a").find(large()) != std::string::npos; }));
  w.answer("{}");
  CHECK(c.has(R"("id":1)"));
  CHECK(w.record().outcome == BH_OUTCOME_OK);
}

TEST_CASE("large arguments with duplicate members are rejected without asking a policy") {
  PolicyWorld w(decides);
  w.judge.judge = allow;
  w.start();
  Client c(*w.host);
  const std::size_t bytes = GENERATE(10U, 300'000U);
  c.call("1", "a__x", with_arguments(large(twins, bytes)));
  REQUIRE(
      w.turn_until([&] { return c.has("arguments contain an object with duplicate members"); }));
  CHECK(w.judge.asked.empty());
  CHECK_FALSE(w.sent_call());
  CHECK(w.record().outcome == BH_OUTCOME_REFUSED);
}

TEST_CASE("large arguments that no policy reads are sent immediately without a check") {
  PolicyWorld w(BH_POLICY_DECIDES);
  w.judge.judge = allow;
  w.start();
  Client c(*w.host);
  c.call("1", "a__x", with_arguments(large(twins)));
  CHECK(w.sent_call());
}

TEST_CASE(
    "a large call can be decided by a delayed verdict after the check, or be cancelled before the "
    "check") {
  PolicyWorld w(decides);
  w.start();
  Client c(*w.host);
  c.call("1", "a__x", with_arguments(large()));
  SECTION("allowed by a delayed verdict") {
    REQUIRE(w.turn_until([&] { return w.judge.asked.size() == 1; }));
    w.turn(20);
    CHECK_FALSE(w.sent_call());
    w.judge.decided(w.judge.last().number, BH_VERDICT_REWRITE, R"({"n":2})");
    REQUIRE(w.turn_until([&] { return w.sent_call(); }));
    CHECK(w.up.last("a").find(R"("arguments":{"n":2})") != std::string::npos);
  }
  SECTION("refused by a delayed verdict") {
    REQUIRE(w.turn_until([&] { return w.judge.asked.size() == 1; }));
    w.judge.decided(w.judge.last().number, BH_VERDICT_BLOCK);
    REQUIRE(w.turn_until([&] { return c.has("blocked by policy (r1)"); }));
    CHECK_FALSE(w.sent_call());
  }
  SECTION("cancelled") {
    c.end->send(R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}})");
    w.turn(50);
    CHECK(w.judge.asked.empty());
    CHECK_FALSE(w.sent_call());
  }
}

TEST_CASE("a large result is evaluated in a later turn and is not forwarded before") {
  PolicyWorld w(observes);
  w.judge.judge = allow;
  w.start();
  Client c(*w.host);
  c.call("1", "a__x");
  REQUIRE(w.sent_call());
  SECTION("allowed") {
    w.answer(large());
    CHECK(w.judge.asked.empty());
    CHECK(c.got.empty());
    REQUIRE(w.turn_until([&] { return c.has(large()); }));
    CHECK(w.judge.last().text == large());
  }
  SECTION("with duplicate members") {
    w.answer(large(twins));
    REQUIRE(w.turn_until([&] { return c.has("the result contains an object with duplicate"); }));
    CHECK(w.judge.asked.empty());
    CHECK(c.got.size() == 1);
  }
  SECTION("blocked by a delayed verdict") {
    w.judge.judge = later;
    w.answer(large());
    REQUIRE(w.turn_until([&] { return w.judge.asked.size() == 1; }));
    w.judge.decided(w.judge.last().number, BH_VERDICT_BLOCK);
    REQUIRE(w.turn_until([&] { return c.has("response blocked by policy (r1)"); }));
    CHECK_FALSE(c.has("xxx"));
  }
}

TEST_CASE("large notifications and server-initiated requests are evaluated in a later turn") {
  PolicyWorld w(BH_POLICY_JUDGES_INPUT | BH_POLICY_JUDGES_NOTIFICATIONS);
  w.judge.judge = allow;
  w.start();
  Client c(*w.host, R"({"elicitation":{}})");
  REQUIRE(w.turn_until([&] { return w.host->settled(); }));
  c.call("1", "a__x");
  REQUIRE(w.sent_call());
  const bool asks = GENERATE(true, false);
  const std::string message =
      asks ? R"({"jsonrpc":"2.0","id":"s1","method":"elicitation/create","params":)"
           : R"({"jsonrpc":"2.0","method":"notifications/mine","params":)";
  const std::uint64_t call = std::stoull(FakeUpstreams::id_of(w.up.last("a")));
  SECTION("allowed") {
    w.up.send("a", message + large() + "}", call);
    CHECK(w.judge.asked.empty());
    CHECK(c.got.empty());
    REQUIRE(w.turn_until([&] { return c.has(large()); }));
    CHECK(w.judge.last().text == large());
  }
  SECTION("with duplicate members") {
    w.up.send("a", message + large(twins) + "}", call);
    w.turn(100);
    CHECK(w.judge.asked.empty());
    CHECK_FALSE(c.has("xxx"));
  }
  SECTION("the client has disconnected") {
    w.up.send("a", message + large() + "}", call);
    c.end.reset();
    w.turn(100);
    CHECK(w.judge.asked.empty());
  }
}

TEST_CASE("messages that wait for the check count towards the limit of data waiting for policies") {
  PolicyWorld w(decides);
  w.profile.limits.policy_waiting_bytes = 500'000;
  w.judge.judge = allow;
  w.start();
  Client c(*w.host);
  c.call("1", "a__x", with_arguments(large()));
  c.call("2", "a__x", with_arguments(large()));
  REQUIRE(w.turn_until([&] { return c.has("limits.policy_waiting_bytes"); }));
  REQUIRE(w.turn_until([&] { return w.sent_call(); }));
  CHECK(w.judge.asked.size() == 1);
  c.call("3", "a__x", with_arguments(large()));
  REQUIRE(w.turn_until([&] { return w.judge.asked.size() == 2; }));
}

// ---- policy rewrites ------------------------------------------------------------------------

namespace {

// Returns a verdict function that replaces the data of every request with `text`.
auto rewriting(std::string text) {
  return [text = std::move(text)](const FakeJudge::Asked &, bh_verdict *out) -> bh_status {
    out->verdict = BH_VERDICT_REWRITE;
    out->arguments = bh::str(text);
    return BH_OK;
  };
}

}  // namespace

TEST_CASE("a large rewrite is not checked inside the policy's callback") {
  const std::string broken = large("").substr(1);
  bh_verdict verdict{};
  verdict.size = sizeof verdict;
  verdict.verdict = BH_VERDICT_REWRITE;
  verdict.arguments = bh::str(broken);
  Gate::Decision decision = Gate::from(verdict);
  CHECK(decision.unread);
  CHECK(decision.verdict == Gate::Verdict::rewrite);
  Gate::look_at(&decision);
  CHECK(decision.verdict == Gate::Verdict::refuse);
  const std::string small = broken.substr(200'000);
  verdict.arguments = bh::str(small);
  CHECK(Gate::from(verdict).verdict == Gate::Verdict::refuse);
}

TEST_CASE("a large rewrite of a call is sent in a later turn") {
  PolicyWorld w(decides);
  const std::string text = large(R"(,"by":"policy")");
  w.judge.judge = rewriting(text);
  w.start();
  Client c(*w.host);
  c.call("1", "a__x", with_arguments("{}"));
  CHECK(w.judge.asked.size() == 1);
  CHECK_FALSE(w.sent_call());
  REQUIRE(w.turn_until([&] { return w.sent_call(); }));
  CHECK(w.up.last("a").find(text) != std::string::npos);
  CHECK(w.judge.asked.size() == 1);
}

TEST_CASE("an invalid large rewrite rejects the call, immediately or later") {
  const bool at_once = GENERATE(true, false);
  const auto &[text, fault] = GENERATE(table<std::string, std::string>(
      {{large(twins), "rewrite contains an object with duplicate"},
       {large("").substr(1), "rewrite is not JSON"},
       {R"({"n":1,"n":2})", "rewrite contains an object with dup"}}));
  PolicyWorld w(decides);
  if (at_once) w.judge.judge = rewriting(text);
  w.start();
  Client c(*w.host);
  c.call("1", "a__x", with_arguments("{}"));
  if (!at_once) w.judge.decided(w.judge.last().number, BH_VERDICT_REWRITE, text);
  REQUIRE(w.turn_until([&] { return c.has(fault); }));
  CHECK_FALSE(w.sent_call());
  CHECK(w.record().rule == "policy-failed");
}

TEST_CASE("a large rewrite of a result reaches the client in a later turn if it is valid") {
  PolicyWorld w(observes);
  const bool good = GENERATE(true, false);
  const std::string text = large(good ? R"(,"by":"policy")" : twins);
  w.judge.judge = rewriting(text);
  w.start();
  Client c(*w.host);
  c.call("1", "a__x");
  w.answer(R"({"original":1})");
  CHECK(c.got.empty());
  REQUIRE(w.turn_until([&] { return !c.got.empty(); }));
  CHECK(c.has(text) == good);
  CHECK_FALSE(c.has("original"));
}

TEST_CASE("a large rewrite is checked before a later policy evaluates it") {
  PolicyWorld w(decides);
  w.profile.policies.push_back(use("fake-policy"));
  w.profile.policies.back().id = "second";
  const bool good = GENERATE(true, false);
  const std::string text = large(good ? R"(,"by":"policy")" : twins);
  w.judge.judge = [&, rewrite = rewriting(text)](const FakeJudge::Asked &asked, bh_verdict *out) {
    return asked.text == text ? allow(asked, out) : rewrite(asked, out);
  };
  w.start();
  Client c(*w.host);
  c.call("1", "a__x", with_arguments("{}"));
  CHECK(w.judge.asked.size() == 1);
  CHECK_FALSE(w.sent_call());
  REQUIRE(w.turn_until([&] { return w.sent_call() || !c.got.empty(); }));
  CHECK(w.sent_call() == good);
  CHECK(w.judge.asked.size() == (good ? 2 : 1));
}

TEST_CASE("a large rewrite of a call that has finished is dropped") {
  PolicyWorld w(decides);
  w.judge.judge = rewriting(large());
  w.start();
  {
    Client c(*w.host);
    c.call("1", "a__x", with_arguments("{}"));
  }
  Client other(*w.host);
  w.judge.judge = allow;
  other.call("2", "a__x");
  REQUIRE(w.turn_until([&] { return w.sent_call(); }));
  w.turn(50);
  CHECK(w.up.last("a").find("xxx") == std::string::npos);
}
