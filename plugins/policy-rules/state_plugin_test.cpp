// Tests bh.state/1 of the whole plugin in a fake host.
#include <bulkhead/abi/ext/draft/state.h>
#include <bulkhead/abi/ext/policy.h>
#include <bulkhead/abi/plugin.h>

#include <catch2/catch.hpp>

#include <bulkhead/testing/fake_host.hpp>
#include <string>
#include <vector>

#include "rules_test.hpp"

extern "C" const bh_entry *bh_static_entry_PolicyRules(void);

namespace {

// An instance with a budget of two calls whose arguments have the member `mark`.
struct BudgetPlugin {
  bh::testing::FakeHost host;
  bh_host_policy host_policy{};
  static inline std::vector<std::uint32_t> later;  // verdicts for large messages
  const bh_plugin *plugin = nullptr;
  const bh_policy *policy = nullptr;
  const bh_state *state = nullptr;
  bh_error error = bh::make_error();

  BudgetPlugin() {
    later.clear();
    host_policy.size = sizeof host_policy;
    host_policy.decided = [](void *, std::uint64_t, const bh_verdict *verdict) -> bh_status {
      later.push_back(verdict->verdict);
      return BH_OK;
    };
    host.add_ext(BH_EXT_HOST_POLICY, &host_policy);
    const std::string config = bulkhead::rules::test::rules(
        R"j({"cap": {"on": "mcp.request", "if": "has(mcp.request.arguments.mark)",
             "decision": "block", "over": {"calls": 2, "by": []}}})j");
    REQUIRE(bh_static_entry_PolicyRules()->create("policy-rules", host.host(), &plugin, &error) ==
            BH_OK);
    REQUIRE(plugin->configure(plugin->self, bh::str(config), &error) == BH_OK);
    REQUIRE(plugin->start(plugin->self, &error) == BH_OK);
    policy = static_cast<const bh_policy *>(plugin->get_ext(plugin->self, BH_EXT_POLICY));
    state = static_cast<const bh_state *>(plugin->get_ext(plugin->self, BH_EXT_STATE));
    REQUIRE(state != nullptr);
  }
  ~BudgetPlugin() {
    plugin->stop(plugin->self);
    plugin->destroy(plugin->self);
    CHECK(host.faults().empty());
  }
  BudgetPlugin(const BudgetPlugin &) = delete;
  BudgetPlugin &operator=(const BudgetPlugin &) = delete;

  // Returns the verdict, or 0 if it is pending.
  std::uint32_t decide(std::uint64_t exchange, std::size_t bytes = 1) {
    const std::string arguments = R"({"mark":")" + std::string(bytes, 'x') + "\"}";
    bh_policy_request request{};
    request.size = sizeof request;
    request.exchange = exchange;
    request.method = bh::str("tools/call");
    request.server = bh::str("files");
    request.name = bh::str("read");
    request.arguments = bh::str(arguments);
    bh_verdict verdict{};
    verdict.size = sizeof verdict;
    const bh_status status = policy->decide(plugin->self, &request, &verdict, &error);
    REQUIRE((status == BH_OK || status == BH_PENDING));
    return status == BH_OK ? verdict.verdict : 0;
  }
  // The strings of the blob belong to the instance.
  bh_state_blob exported() {
    bh_state_blob blob{};
    blob.size = sizeof blob;
    REQUIRE(state->export_state(plugin->self, &blob, &error) == BH_OK);
    return blob;
  }
  bh_status import(const bh_state_blob &blob) {
    error = bh::make_error();
    return state->import_state(plugin->self, &blob, &error);
  }
};

}  // namespace

TEST_CASE("policy-rules passes its counts to another instance") {
  BudgetPlugin former, next;
  CHECK(former.decide(1) == BH_VERDICT_ALLOW);
  REQUIRE(next.import(former.exported()) == BH_OK);
  CHECK(next.decide(2) == BH_VERDICT_ALLOW);
  CHECK(next.decide(3) == BH_VERDICT_BLOCK);
  // The former instance can continue, and each import replaces the one before.
  CHECK(former.decide(2) == BH_VERDICT_ALLOW);
  CHECK(former.decide(3) == BH_VERDICT_BLOCK);
  BudgetPlugin fresh;
  REQUIRE(next.import(fresh.exported()) == BH_OK);
  CHECK(next.decide(4) == BH_VERDICT_ALLOW);
}

TEST_CASE("policy-rules does not pass on calls that it has not decided yet") {
  BudgetPlugin former, next;
  CHECK(former.decide(1) == BH_VERDICT_ALLOW);
  CHECK(former.decide(2, 200'000) == 0);
  REQUIRE(next.import(former.exported()) == BH_OK);
  REQUIRE(former.host.run_until([] { return BudgetPlugin::later.size() == 1; }, 120'000));
  // The host sends the call to the new instance, which counts it.
  BudgetPlugin::later.clear();
  CHECK(next.decide(2, 200'000) == 0);
  REQUIRE(next.host.run_until([] { return BudgetPlugin::later.size() == 1; }, 120'000));
  CHECK(BudgetPlugin::later[0] == BH_VERDICT_ALLOW);
  CHECK(next.decide(3) == BH_VERDICT_BLOCK);
}

TEST_CASE("policy-rules rejects states with another format") {
  BudgetPlugin former, next;
  const bh_state_blob good = former.exported();
  bh_state_blob wrong = good;
  std::string reason = "another format";
  SECTION("another schema") {
    wrong.schema = bh::str("com.example.other");
  }
  SECTION("another version") {
    ++wrong.version;
  }
  SECTION("descriptors") {
    wrong.fd_count = 1;
  }
  SECTION("other bytes") {
    wrong.bytes = bh::str("\xff\xff");
    reason = "malformed";
  }
  CHECK(next.import(wrong) == BH_E_INVALID);
  CHECK(std::string(bh::text(next.error)).find(reason) != std::string::npos);
  CHECK(next.import(good) == BH_OK);
}
