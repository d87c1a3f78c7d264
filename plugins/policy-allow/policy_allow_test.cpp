#include <catch2/catch.hpp>

#include <bulkhead/abi/ext/policy.h>
#include <bulkhead/abi/plugin.h>
#include <bulkhead/testing/fake_host.hpp>

extern "C" const bh_entry *bh_static_entry_PolicyAllow(void);

TEST_CASE("everything is allowed, and no data is requested") {
  bh::testing::FakeHost host;
  const bh_entry *entry = bh_static_entry_PolicyAllow();
  REQUIRE(entry->count == 1);
  CHECK(std::string_view(entry->descriptor(0)->id) == "policy-allow");
  const bh_plugin *plugin = nullptr;
  bh_error error = bh::make_error();
  REQUIRE(entry->create("policy-allow", host.host(), &plugin, &error) == BH_OK);
  REQUIRE(plugin->configure(plugin->self, bh::str("{}"), &error) == BH_OK);
  REQUIRE(plugin->start(plugin->self, &error) == BH_OK);
  CHECK(plugin->get_ext(plugin->self, BH_EXT_POLICY "x") == nullptr);
  const auto *policy = static_cast<const bh_policy *>(plugin->get_ext(plugin->self, BH_EXT_POLICY));
  REQUIRE(policy != nullptr);
  CHECK(policy->needs(plugin->self) == 0);
  bh_policy_request request{};
  request.size = sizeof request;
  bh_verdict verdict{};
  verdict.size = sizeof verdict;
  CHECK(policy->decide(plugin->self, &request, &verdict, &error) == BH_OK);
  CHECK(verdict.verdict == BH_VERDICT_ALLOW);
  verdict.verdict = 0;
  CHECK(policy->observe(plugin->self, &request, bh::str("{}"), &verdict, &error) == BH_OK);
  CHECK(verdict.verdict == BH_VERDICT_ALLOW);
  CHECK(policy->filter(plugin->self, &request, nullptr) == BH_OK);
  plugin->stop(plugin->self);
  plugin->destroy(plugin->self);
  CHECK(host.faults().empty());
}
