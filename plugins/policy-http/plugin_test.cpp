// Tests the complete plugin with a fake HTTP client.
#include <bulkhead/abi/ext/policy.h>
#include <bulkhead/abi/plugin.h>

#include <catch2/catch.hpp>

#include "egress-kit/testing.hpp"

extern "C" const bh_entry *bh_static_entry_PolicyHttp(void);

namespace {

struct World {
  struct Verdict {
    std::uint64_t exchange;
    std::uint32_t verdict;
    std::string rule, reason, rewritten;
  };
  bh::testing::FakeHost host;
  egress::testing::FakeHttp http{host};
  bh_host_policy host_policy{};
  static inline std::vector<Verdict> later;  // verdicts that are reported through bh_host_policy
  const bh_plugin *plugin = nullptr;
  const bh_policy *policy = nullptr;
  bh_verdict out{};
  bh_error error = bh::make_error();

  explicit World(const std::string &more = {}) {
    later.clear();
    host_policy.size = sizeof host_policy;
    host_policy.decided = [](void *, std::uint64_t exchange, const bh_verdict *v) -> bh_status {
      later.push_back({exchange, v->verdict, std::string(bh::view(v->rule)),
                       std::string(bh::view(v->reason)), std::string(bh::view(v->arguments))});
      return BH_OK;
    };
    host.add_ext(BH_EXT_HOST_POLICY, &host_policy);
    REQUIRE(bh_static_entry_PolicyHttp()->create("policy-http", host.host(), &plugin, &error) ==
            BH_OK);
    const std::string config = R"({"url":"https://pdp.example/v1")" + more + "}";
    REQUIRE(plugin->configure(plugin->self, bh::str(config), &error) == BH_OK);
    REQUIRE(plugin->start(plugin->self, &error) == BH_OK);
    policy = static_cast<const bh_policy *>(plugin->get_ext(plugin->self, BH_EXT_POLICY));
  }
  ~World() {
    plugin->stop(plugin->self);
    CHECK(http.open() == 0);
    CHECK(host.timers() == 0);
    plugin->destroy(plugin->self);
    CHECK(host.faults().empty());
  }

  static bh_policy_request request(std::uint64_t exchange, std::string_view arguments) {
    bh_policy_request r{};
    r.size = sizeof r;
    r.exchange = exchange;
    r.method = bh::str("tools/call");
    r.server = bh::str("files");
    r.name = bh::str("read");
    r.arguments = bh::str(arguments);
    return r;
  }
  bh_status decide(std::uint64_t exchange, std::string_view arguments = "{}") {
    const bh_policy_request r = request(exchange, arguments);
    out = {};
    out.size = sizeof out;
    error = bh::make_error();
    return policy->decide(plugin->self, &r, &out, &error);
  }
  const Verdict &answered(std::size_t n = 1) {
    REQUIRE(host.run_until([&] { return later.size() >= n; }, 5000));
    return later[n - 1];
  }
};

}  // namespace

TEST_CASE("the server's response decides the call") {
  World w;
  CHECK(w.policy->needs(w.plugin->self) == (BH_POLICY_DECIDES | BH_POLICY_READS_ARGUMENTS));
  REQUIRE(w.decide(5) == BH_PENDING);
  REQUIRE(w.http.requests.size() == 1);
  w.http.answer(0, 200, R"({"decision":"block","rule_id":"r7","reason":"not today"})");
  const World::Verdict &verdict = w.answered();
  CHECK(verdict.exchange == 5);
  CHECK(verdict.verdict == BH_VERDICT_BLOCK);
  CHECK(verdict.rule == "r7");
  CHECK(verdict.reason == "not today");
}

TEST_CASE("a response is reused for the same request during its time to live") {
  World w;
  REQUIRE(w.decide(1) == BH_PENDING);
  w.http.answer(0, 200, R"({"decision":"allow","rule_id":"ok","ttl_ms":60000})");
  w.answered();
  REQUIRE(w.decide(2) == BH_OK);
  CHECK(w.out.verdict == BH_VERDICT_ALLOW);
  CHECK(bh::view(w.out.rule) == "ok");
  CHECK(w.decide(3, R"({"other":1})") == BH_PENDING);
  CHECK(w.http.requests.size() == 2);
}

TEST_CASE("every failure rejects the call and is not cached") {
  World w;
  REQUIRE(w.decide(1) == BH_PENDING);
  SECTION("no response") {
    w.http.end(0, "connect timed out");
  }
  SECTION("an error status") {
    w.http.answer(0, 500, R"({"decision":"allow","ttl_ms":60000})");
  }
  SECTION("a redirect") {
    w.http.answer(0, 302, R"({"decision":"allow","ttl_ms":60000})");
  }
  SECTION("an invalid response") {
    w.http.answer(0, 200, "<html>");
  }
  SECTION("a response that is too large") {
    w.http.answer(0, 200, std::string(300 << 10, ' '));
  }
  const World::Verdict &verdict = w.answered();
  CHECK(verdict.verdict == BH_VERDICT_BLOCK);
  CHECK(verdict.rule == "policy-failed");
  CHECK(verdict.reason.starts_with("the decision point https://pdp.example: "));
  CHECK(w.decide(2) == BH_PENDING);
}

TEST_CASE("pending requests are limited, and additional calls are rejected") {
  World w(R"(,"max_in_flight":2)");
  REQUIRE(w.decide(1) == BH_PENDING);
  REQUIRE(w.decide(2) == BH_PENDING);
  CHECK(w.decide(3) == BH_E_LIMIT);
  CHECK(bh::text(w.error).find("max_in_flight = 2") != std::string::npos);
  w.http.answer(0, 200, R"({"decision":"allow"})");
  w.answered();
  CHECK(w.decide(3) == BH_PENDING);
}

TEST_CASE("results are sent to the decision point if configured") {
  World w(R"(,"on":["mcp.response"],"send":"names")");
  CHECK(w.policy->needs(w.plugin->self) == BH_POLICY_READS_RESULTS);
  const bh_policy_request r = World::request(1, {});
  w.out.size = sizeof w.out;
  REQUIRE(w.policy->observe(w.plugin->self, &r, bh::str(R"({"content":["secret"]})"), &w.out,
                            &w.error) == BH_PENDING);
  CHECK(w.http.requests[0].body.find("secret") == std::string::npos);
  w.http.answer(
      0, 200, R"({"decision":"rewrite","rewrite_target":"result","rewrite_value":{"content":[]}})");
  const World::Verdict &verdict = w.answered();
  CHECK(verdict.verdict == BH_VERDICT_REWRITE);
  CHECK(verdict.rewritten == R"({"content":[]})");
}

TEST_CASE("a failing server is logged once, and its recovery is logged") {
  World w;
  const auto fail = [&](std::size_t n) {
    REQUIRE(w.decide(n) == BH_PENDING);
    w.http.end(n - 1, "refused");
    w.answered(n);
  };
  fail(1);
  fail(2);
  REQUIRE(w.decide(3) == BH_PENDING);
  w.http.answer(2, 200, R"({"decision":"allow"})");
  w.answered(3);
  std::vector<std::string> lines;
  for (const auto &line : w.host.logs()) lines.push_back(line.text);
  REQUIRE(lines.size() == 2);
  CHECK(lines[0].find("calls are rejected") != std::string::npos);
  CHECK(lines[1].find("has recovered") != std::string::npos);
}
