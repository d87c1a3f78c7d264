// Tests server errors and malformed results with a policy that reads results. The policy also
// evaluates errors because they can carry the same data as results.
#include <catch2/catch.hpp>
#include <string>

#include "embed/policy_world.hpp"

using namespace bulkhead;

namespace {

constexpr const char *secret_error =
    R"({"code":-32042,"message":"token sk-1","data":{"also":"sk-2"}})";

struct ErrorWorld : PolicyWorld {
  ErrorWorld() : PolicyWorld(BH_POLICY_READS_RESULTS) {}
  void fails(const std::string &error) {
    up.send("a", R"({"jsonrpc":"2.0","id":)" + FakeUpstreams::id_of(up.last("a")) + R"(,"error":)" +
                     error + "}");
  }
  void set_verdict(std::uint32_t verdict, std::string_view rewrite = {}) {
    judge.judge = [verdict, rewrite](const FakeJudge::Asked &, bh_verdict *out) {
      out->verdict = verdict;
      out->rule = bh::str("r1");
      out->reason = bh::str("because");
      out->arguments = bh::str(rewrite);
      return bh_status(BH_OK);
    };
  }
};

}  // namespace

TEST_CASE("a policy that reads results receives an error as an equivalent result") {
  ErrorWorld w;
  w.start();
  Client c(*w.host);
  const auto seen = [&](const std::string &error) {
    c.call("1", "a__x");
    w.fails(error);
    return w.judge.last().text;
  };
  CHECK(seen(secret_error) == R"({"isError":true,"content":[{"type":"text","text":"token sk-1"}],)"
                              R"("structuredContent":{"also":"sk-2"}})");
  CHECK(seen(R"({"code":1,"message":"m"})") ==
        R"({"isError":true,"content":[{"type":"text","text":"m"}]})");
  // Members of an error that have no counterpart in a result are added unchanged.
  CHECK(seen(R"({"code":1,"message":"m","data":["d"]})") ==
        R"({"isError":true,"content":[{"type":"text","text":"m"}],)"
        R"("error":{"code":1,"message":"m","data":["d"]}})");
  CHECK(seen(R"({"code":1,"message":"m","more":"d"})").find(R"("more":"d")") != std::string::npos);
  CHECK(seen(R"({"code":1,"message":{"m":"d"}})").find(R"({"m":"d"})") != std::string::npos);
}

TEST_CASE("an error that a policy rejects is replaced and not recorded") {
  ErrorWorld w;
  w.start();
  Client c(*w.host);
  const auto blocked = [&](const std::string &why) {
    REQUIRE(w.turn_until([&] { return !c.got.empty(); }));
    REQUIRE(c.got.size() == 1);
    CHECK(c.has(R"("id":1,"error":{"code":-32042)"));
    CHECK(c.has("MCP response blocked by policy (r1)" + why));
    CHECK_FALSE(c.has("sk-"));
    CHECK(w.record().outcome == BH_OUTCOME_REFUSED);
    CHECK(w.record().rule == "r1");
    CHECK(w.record().action == BH_VERDICT_BLOCK);
    CHECK(w.record().response.empty());
    CHECK(w.record().error.find("sk-") == std::string::npos);
    w.turn(60);
    CHECK(w.judge.records.size() <= 2);  // the records of the handshake and of the call
    CHECK(w.host->status().in_flight == 0);
  };
  SECTION("blocked immediately") {
    w.set_verdict(BH_VERDICT_BLOCK);
    c.call("1", "a__x");
    w.fails(secret_error);
    blocked(": because");
  }
  SECTION("rewritten") {
    w.set_verdict(BH_VERDICT_REWRITE, R"({"isError":true,"content":[]})");
    c.call("1", "a__x");
    w.fails(secret_error);
    blocked("");
  }
  SECTION("blocked by a delayed verdict") {
    c.call("1", "a__x");
    w.fails(secret_error);
    CHECK(c.got.empty());
    w.judge.decided(w.judge.last().number, BH_VERDICT_BLOCK);
    blocked("");
  }
}

TEST_CASE("an error that the policy allows is forwarded unchanged") {
  ErrorWorld w;
  w.start();
  Client c(*w.host);
  c.call("1", "a__x");
  w.fails(secret_error);
  CHECK(c.got.empty());
  w.judge.decided(w.judge.last().number, BH_VERDICT_ALLOW);
  REQUIRE(w.turn_until([&] { return !c.got.empty(); }));
  CHECK(c.got[0] == R"({"jsonrpc":"2.0","id":1,"error":)" + std::string(secret_error) + "}");
  CHECK(w.record().outcome == BH_OUTCOME_ERROR);
  CHECK(w.record().response == secret_error);
}

TEST_CASE("a server error without an ID is evaluated before the gateway quotes it") {
  ErrorWorld w;
  w.set_verdict(BH_VERDICT_BLOCK);
  w.start();
  Client c(*w.host);
  c.call("1", "a__x");
  const std::uint64_t call = std::stoull(FakeUpstreams::id_of(w.up.last("a")));
  w.up.send("a", R"({"jsonrpc":"2.0","error":)" + std::string(secret_error) + "}", call);
  REQUIRE(c.got.size() == 1);
  CHECK(c.has("MCP response blocked by policy (r1): because"));
  CHECK_FALSE(c.has("sk-"));
}

TEST_CASE("an ambiguous result is withheld, whatever the policy decides") {
  ErrorWorld w;
  w.judge.judge = nullptr;  // without a verdict function, everything is allowed
  w.start();
  Client c(*w.host);
  c.call("1", "a__x");
  w.answer(R"({"content":[],"a":{"x":"secret","\u0078":1}})");
  REQUIRE(c.got.size() == 1);
  CHECK(c.has(
      "MCP response blocked by policy: the result contains an object with duplicate members"));
  CHECK_FALSE(c.has("secret"));
  CHECK(w.judge.asked.empty());
  CHECK(w.record().outcome == BH_OUTCOME_REFUSED);
  c.got.clear();
  c.call("2", "a__x");
  w.fails(R"({"code":1,"message":"m","message":"secret"})");
  CHECK(c.has("duplicate members"));
  CHECK_FALSE(c.has("secret"));
}

TEST_CASE("the client receives the reason why a result was blocked") {
  ErrorWorld w;
  w.set_verdict(BH_VERDICT_BLOCK);
  w.start();
  Client c(*w.host);
  c.call("1", "a__x");
  w.answer("{}");
  CHECK(c.has(R"(MCP response blocked by policy (r1): because")"));
  CHECK(w.record().error == "because");
}
