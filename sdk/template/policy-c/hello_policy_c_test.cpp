// Tests the plugin through the ABI. The argument is the plugin's file.
#include <bulkhead/abi/ext/policy.h>
#include <bulkhead/testing/test_plugin.hpp>

#include <string_view>

namespace {

using bh::testing::TestPlugin;

bh_policy_request request(const char *method, const char *name) {
  bh_policy_request out{};
  out.size = sizeof out;
  out.method = bh::str(method);
  out.server = bh::str("files");
  out.name = bh::str(name);
  return out;
}

// Returns the verdict, after checking that a blocked call has a rule and a reason.
std::uint32_t decide(TestPlugin &plugin, const bh_policy_request &call) {
  bh_verdict verdict{};
  verdict.size = sizeof verdict;
  const auto *policy = plugin.ext<bh_policy>(BH_EXT_POLICY);
  BH_CHECK(policy->decide(plugin.self(), &call, &verdict, plugin.error()) == BH_OK);
  if (verdict.verdict == BH_VERDICT_BLOCK) {
    BH_CHECK(bh::view(verdict.rule) == "blocked-prefix");
    BH_CHECK(bh::view(verdict.reason).find("are blocked") != std::string_view::npos);
  }
  return verdict.verdict;
}

}  // namespace

int main(int, char **argv) {
  bh::testing::FakeHost host;
  TestPlugin plugin(host, argv[1]);
  BH_CHECK(plugin.configure(R"({"blocked_prefix":"file_w"})") == BH_OK);
  BH_CHECK(plugin.start() == BH_OK);
  const auto *policy = plugin.ext<bh_policy>(BH_EXT_POLICY);
  BH_CHECK(policy->needs(plugin.self()) == (BH_POLICY_DECIDES | BH_POLICY_FILTERS_LISTS));

  BH_CHECK(decide(plugin, request("tools/call", "file_write")) == BH_VERDICT_BLOCK);
  BH_CHECK(decide(plugin, request("tools/call", "file_read")) == BH_VERDICT_ALLOW);
  BH_CHECK(decide(plugin, request("tools/call", "")) == BH_VERDICT_ALLOW);
  BH_CHECK(decide(plugin, request("prompts/get", "file_write")) == BH_VERDICT_ALLOW);

  // The tools are not listed either.
  const bh_policy_request write = request("tools/call", "file_write");
  const bh_policy_request read = request("tools/call", "file_read");
  BH_CHECK(policy->filter(plugin.self(), &write, plugin.error()) < 0);
  BH_CHECK(policy->filter(plugin.self(), &read, plugin.error()) == BH_OK);

  // A kind of message that this policy does not know is rejected.
  bh_policy_request unknown = request("tools/call", "file_read");
  unknown.event = 99;
  bh_verdict verdict{};
  verdict.size = sizeof verdict;
  BH_CHECK(policy->decide(plugin.self(), &unknown, &verdict, plugin.error()) < 0);

  // A reload replaces the prefix. After an error, the old prefix is still in use.
  BH_CHECK(policy->reconfigure(plugin.self(), bh::str(R"({"blocked_prefix":"file_r"})"),
                               plugin.error()) == BH_OK);
  BH_CHECK(decide(plugin, read) == BH_VERDICT_BLOCK);
  BH_CHECK(decide(plugin, write) == BH_VERDICT_ALLOW);
  for (const char *invalid :
       {R"({"blocked_prefix":""})", R"({"blocked_prefix":1})", "{", "[]", ""}) {
    BH_CHECK(policy->reconfigure(plugin.self(), bh::str(invalid), plugin.error()) == BH_E_INVALID);
    BH_CHECK(!plugin.error_text().empty());
    BH_CHECK(decide(plugin, read) == BH_VERDICT_BLOCK);
  }
  BH_CHECK(policy->reconfigure(plugin.self(), bh::str(" { } "), plugin.error()) == BH_OK);
  BH_CHECK(decide(plugin, request("tools/call", "delete_all")) == BH_VERDICT_BLOCK);
  plugin.stop();
  return 0;
}
