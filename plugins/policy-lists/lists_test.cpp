#include "lists.hpp"
#include "explain.hpp"

#include <bulkhead/abi/ext/policy.h>
#include <bulkhead/abi/plugin.h>

#include <bulkhead/testing/fake_host.hpp>
#include <catch2/catch.hpp>

using namespace bulkhead::lists;

extern "C" const bh_entry *bh_static_entry_PolicyLists(void);

namespace {

std::string decide(std::string_view config, std::string_view server, std::string_view tool) {
  const auto lists = Lists::load(config);
  if (!lists) return "refused " + lists.error();
  const Decision decision = lists->decide(server, tool);
  constexpr std::string_view names[] = {"allow", "warn", "block"};
  std::string out(names[static_cast<int>(decision.permission)]);
  return decision.rule.empty() ? out : out + " " + decision.rule;
}

}  // namespace

TEST_CASE("E01: a blocked server takes precedence over its tools' permissions") {
  constexpr auto config =
      R"({"server_enabled":{"a":false},"tool_permissions":{"a__t":"allow"},"blocked_servers":["b"]})";
  CHECK(decide(config, "a", "t") == "block blocked_servers.a");
  CHECK(decide(config, "b", "t") == "block blocked_servers.b");
  CHECK(decide(config, "c", "t") == "allow");
}

TEST_CASE("E02: a non-empty list of allowed servers blocks all other servers") {
  CHECK(decide(R"({"allowed_servers":["a"]})", "b", "t") == "block allowed_servers");
  CHECK(decide(R"({"allowed_servers":["a"]})", "a", "t") == "allow");
  CHECK(decide(R"({"allowed_servers":[]})", "b", "t") == "allow");
  CHECK(decide(R"({"allowed_servers":["a"]})", "b", "") == "block allowed_servers");
}

TEST_CASE("E03: a tool's permission takes precedence over the default") {
  constexpr auto config =
      R"({"default_tool_permission":"block","tool_permissions":{"a__t":"allow"}})";
  CHECK(decide(config, "a", "t") == "allow tool_permissions.a__t");
  CHECK(decide(config, "a", "u") == "block default_tool_permission");
  CHECK(decide(config, "a", "") == "allow");  // a resource is not a tool
  CHECK(decide("{}", "a", "t") == "allow");
}

TEST_CASE("E04: warn allows the call") {
  CHECK(decide(R"({"tool_permissions":{"a__t":"warn"}})", "a", "t") ==
        "warn tool_permissions.a__t");
  CHECK(decide(R"({"default_tool_permission":"warn"})", "a", "t") ==
        "warn default_tool_permission");
}

TEST_CASE("E05: for each key, the corporation's value takes precedence over the user's") {
  constexpr auto config = R"({"tool_permissions":{"a__t":"allow","a__u":"block"},
    "default_tool_permission":"allow","allowed_servers":["a","b"],"server_enabled":{"b":true},
    "corp":{"tool_permissions":{"a__t":"block"},"default_tool_permission":"warn",
            "server_enabled":{"b":false}}})";
  CHECK(decide(config, "a", "t") == "block tool_permissions.a__t");
  CHECK(decide(config, "a", "u") == "block tool_permissions.a__u");
  CHECK(decide(config, "a", "v") == "warn default_tool_permission");
  CHECK(decide(config, "b", "t") == "block blocked_servers.b");
}

TEST_CASE("a global block in either layer overrides all other keys") {
  CHECK(decide(R"({"global_policy":"block","tool_permissions":{"a__t":"allow"}})", "a", "t") ==
        "block global_policy");
  CHECK(decide(R"({"global_policy":"block","corp":{"global_policy":"allow"}})", "a", "t") ==
        "block global_policy");
  CHECK(decide(R"({"global_policy":"allow","corp":{"global_policy":"block"}})", "a", "t") ==
        "block global_policy");
}

TEST_CASE("an ambiguous tool name permits only one of its interpretations") {
  constexpr auto strict =
      R"({"default_tool_permission":"block","tool_permissions":{"a__b__c":"allow","a__b__w":"warn"}})";
  CHECK(decide(strict, "a", "b__c") == "allow tool_permissions.a__b__c");
  CHECK(decide(strict, "a__b", "c") == "block default_tool_permission");
  CHECK(decide(strict, "a__b", "w") == "block default_tool_permission");
  CHECK(decide(R"({"default_tool_permission":"block","tool_permissions":{"a___x":"allow"}})", "a_",
               "x") == "block default_tool_permission");
  // An entry that is stricter than the default applies however the name is split.
  constexpr auto loose =
      R"({"tool_permissions":{"a__b__c":"block","a__b__w":"warn","a__b__ok":"allow"}})";
  CHECK(decide(loose, "a", "b__c") == "block tool_permissions.a__b__c");
  CHECK(decide(loose, "a__b", "c") == "block tool_permissions.a__b__c");
  CHECK(decide(loose, "a__b", "w") == "warn tool_permissions.a__b__w");
  CHECK(decide(loose, "a__b", "ok") == "allow");
  constexpr auto warned =
      R"({"default_tool_permission":"warn","tool_permissions":{"a__b__c":"allow"}})";
  CHECK(decide(warned, "a", "b__c") == "allow tool_permissions.a__b__c");
  CHECK(decide(warned, "a__b", "c") == "warn default_tool_permission");
}

TEST_CASE("invalid configurations are rejected") {
  CHECK(decide(R"({"tool_permission":{}})", "a", "t").starts_with("refused tool_permission: "));
  CHECK(decide(R"({"tool_permissions":{"a__t":"deny"}})", "a", "t") ==
        "refused tool_permissions.a__t: must be \"allow\", \"warn\" or \"block\"");
  CHECK(decide(R"({"tool_permissions":{"t":"allow"}})", "a", "t") ==
        "refused tool_permissions.t: a tool name must have the form server__tool");
  CHECK(decide(R"({"global_policy":"warn"})", "a", "t").starts_with("refused global_policy"));
  CHECK(decide(R"({"corp":{"corp":{}}})", "a", "t").starts_with("refused corp.corp"));
  CHECK(decide(R"({"corp":1})", "a", "t") == "refused corp: must be a table");
  CHECK(decide(R"({"server_enabled":{"a":1}})", "a", "t").starts_with("refused server_enabled"));
  CHECK(decide("[]", "a", "t") == "refused the configuration is not a table");
  CHECK(decide(R"({"profile_rules":[]})", "a", "t").find("rules = false") != std::string::npos);
}

TEST_CASE("the plugin declares its requirements, decides, and accepts a policy reload") {
  bh::testing::FakeHost host;
  const bh_entry *entry = bh_static_entry_PolicyLists();
  const bh_plugin *plugin = nullptr;
  bh_error error = bh::make_error();
  REQUIRE(entry->create("policy-lists", host.host(), &plugin, &error) == BH_OK);
  REQUIRE(plugin->configure(plugin->self, bh::str("{}"), &error) == BH_OK);
  REQUIRE(plugin->start(plugin->self, &error) == BH_OK);
  const auto *policy = static_cast<const bh_policy *>(plugin->get_ext(plugin->self, BH_EXT_POLICY));
  CHECK(policy->needs(plugin->self) == 0);
  REQUIRE(policy->reconfigure(plugin->self,
                              bh::str(R"({"tool_permissions":{"a__t":"warn","a__u":"block"}})"),
                              &error) == BH_OK);
  CHECK(policy->reconfigure(plugin->self, bh::str(R"({"x":1})"), &error) == BH_E_INVALID);
  CHECK(policy->needs(plugin->self) == (BH_POLICY_DECIDES | BH_POLICY_FILTERS_LISTS));
  bh_policy_request request{};
  request.size = sizeof request;
  request.method = bh::str("tools/call");
  request.server = bh::str("a");
  request.name = bh::str("t");
  bh_verdict verdict{};
  verdict.size = sizeof verdict;
  CHECK(policy->decide(plugin->self, &request, &verdict, &error) == BH_OK);
  CHECK(verdict.verdict == BH_VERDICT_ALLOW);
  CHECK(verdict.flags == BH_VERDICT_WARNED);
  CHECK(policy->filter(plugin->self, &request, nullptr) == BH_OK);
  request.name = bh::str("u");
  CHECK(policy->decide(plugin->self, &request, &verdict, &error) == BH_OK);
  CHECK(verdict.verdict == BH_VERDICT_BLOCK);
  CHECK(verdict.flags == 0);
  CHECK(bh::view(verdict.rule) == "tool_permissions.a__u");
  CHECK(policy->filter(plugin->self, &request, nullptr) == BH_E_DENIED);
  plugin->stop(plugin->self);
  plugin->destroy(plugin->self);
  CHECK(host.faults().empty());
}

TEST_CASE("explaining a request that policies do not evaluate shows that it is allowed") {
  const auto lists = Lists::load(R"({"blocked_servers":["b"]})");
  REQUIRE(lists.has_value());
  const auto said = [&](const std::string &method) {
    const auto text = explain(*lists, R"({"server":"b","name":"n","method":")" + method + "\"}");
    REQUIRE(text.has_value());
    return text->substr(0, text->find(R"(,"reason")"));
  };
  for (const char *method :
       {"resources/unsubscribe", "tasks/get", "tasks/result", "tasks/cancel"}) {
    CHECK(said(method) == R"({"request":{"decision":"allow","rule":"")");
  }
  for (const char *method : {"tools/call", "resources/subscribe", "tasks/update"}) {
    CHECK(said(method) == R"({"request":{"decision":"block","rule":"blocked_servers.b")");
  }
}
