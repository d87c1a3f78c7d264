// Messages too large to be looked at for duplicate members before somebody else's turn: nothing is
// asked or answered in the turn in which they come.
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

TEST_CASE("a policy is asked about large arguments in a later turn, and others go on meanwhile") {
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

TEST_CASE("large arguments with duplicate members are refused, and no policy is asked") {
  PolicyWorld w(decides);
  w.judge.judge = allow;
  w.start();
  Client c(*w.host);
  const std::size_t bytes = GENERATE(10U, 300'000U);
  c.call("1", "a__x", with_arguments(large(twins, bytes)));
  REQUIRE(w.turn_until([&] { return c.has("arguments hold an object with duplicate members"); }));
  CHECK(w.judge.asked.empty());
  CHECK_FALSE(w.sent_call());
  CHECK(w.record().outcome == BH_OUTCOME_REFUSED);
}

TEST_CASE("large arguments that nobody reads go on at once, whatever is in them") {
  PolicyWorld w(BH_POLICY_DECIDES);
  w.judge.judge = allow;
  w.start();
  Client c(*w.host);
  c.call("1", "a__x", with_arguments(large(twins)));
  CHECK(w.sent_call());
}

TEST_CASE("a large call may be decided later still, or be given up before it is looked at") {
  PolicyWorld w(decides);
  w.start();
  Client c(*w.host);
  c.call("1", "a__x", with_arguments(large()));
  SECTION("decided later") {
    REQUIRE(w.turn_until([&] { return w.judge.asked.size() == 1; }));
    w.turn(20);
    CHECK_FALSE(w.sent_call());
    w.judge.decided(w.judge.last().number, BH_VERDICT_REWRITE, R"({"n":2})");
    REQUIRE(w.turn_until([&] { return w.sent_call(); }));
    CHECK(w.up.last("a").find(R"("arguments":{"n":2})") != std::string::npos);
  }
  SECTION("refused later") {
    REQUIRE(w.turn_until([&] { return w.judge.asked.size() == 1; }));
    w.judge.decided(w.judge.last().number, BH_VERDICT_BLOCK);
    REQUIRE(w.turn_until([&] { return c.has("blocked by policy (r1)"); }));
    CHECK_FALSE(w.sent_call());
  }
  SECTION("given up") {
    c.end->send(R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}})");
    w.turn(50);
    CHECK(w.judge.asked.empty());
    CHECK_FALSE(w.sent_call());
  }
}

TEST_CASE("a large result is observed in a later turn; its original waits") {
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
    REQUIRE(w.turn_until([&] { return c.has("the result holds an object with duplicate"); }));
    CHECK(w.judge.asked.empty());
    CHECK(c.got.size() == 1);
  }
  SECTION("blocked later") {
    w.judge.judge = later;
    w.answer(large());
    REQUIRE(w.turn_until([&] { return w.judge.asked.size() == 1; }));
    w.judge.decided(w.judge.last().number, BH_VERDICT_BLOCK);
    REQUIRE(w.turn_until([&] { return c.has("response blocked by policy (r1)"); }));
    CHECK_FALSE(c.has("xxx"));
  }
}

TEST_CASE("large notifications and requests of servers are judged in a later turn") {
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
    w.up.say("a", message + large() + "}", call);
    CHECK(w.judge.asked.empty());
    CHECK(c.got.empty());
    REQUIRE(w.turn_until([&] { return c.has(large()); }));
    CHECK(w.judge.last().text == large());
  }
  SECTION("with duplicate members") {
    w.up.say("a", message + large(twins) + "}", call);
    w.turn(100);
    CHECK(w.judge.asked.empty());
    CHECK_FALSE(c.has("xxx"));
  }
  SECTION("its client has gone") {
    w.up.say("a", message + large() + "}", call);
    c.end.reset();
    w.turn(100);
    CHECK(w.judge.asked.empty());
  }
}

TEST_CASE("what waits to be looked at counts as what waits for the policy") {
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
