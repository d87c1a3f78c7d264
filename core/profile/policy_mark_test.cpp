// Tests the digest of a profile's policies and rules, and the differences between two profiles.
#include "profile/policy_mark.hpp"

#include <catch2/catch.hpp>

#include "layers/load.hpp"
#include "layers/profile_test_util.hpp"
#include "profile/difference.hpp"

using namespace bulkhead;
using namespace bulkhead::test;

namespace {

using Lines = std::vector<std::string>;

std::vector<PluginUse> policies(const std::string &text, const std::string &layer = "file") {
  const ProfileLayer base = {"builtin", "", "[policies.default]\nplugin = \"judge\"\n"};
  return good({base, {layer, "a.toml", text}}).policies;
}

std::string rule(const std::string &name, const std::string &condition) {
  return "[security.rules.mcp." + name + "]\nif = \"" + condition + "\"\n";
}

Lines changes(const std::string &was, const std::string &is) {
  const auto before = policies(was), after = policies(is);
  const PolicyMark first = first_policy_mark(before);
  const PolicyMark next = next_policy_mark(first, before, after);
  CHECK(next.generation == first.generation + (next.digest == first.digest ? 0 : 1));
  return next.changes;
}

}  // namespace

TEST_CASE("the digest covers the rules, but not their locations in files") {
  const std::string a = rule("a", "1"), b = rule("b", "2");
  const PolicyMark mark = first_policy_mark(policies(a + b));
  CHECK(mark.generation == 1);
  CHECK(mark.rules == 2);
  CHECK(mark.digest.size() == 32);
  CHECK(mark.changes.empty());
  CHECK(describe_changes(mark).empty());
  CHECK(first_policy_mark(policies("\n# note\n" + b + "\n" + a)).digest == mark.digest);
  // The same rule in another layer may have a different priority, so it counts as a different rule.
  CHECK(first_policy_mark(policies(a + b, "user")).digest != mark.digest);
  CHECK(first_policy_mark(policies(a)).digest != mark.digest);
  CHECK(first_policy_mark(policies("")).rules == 0);
}

TEST_CASE("changes count rules by name, in all equivalent forms") {
  CHECK(changes("", rule("a", "1") + rule("b", "1")) == Lines{"2 rules added"});
  CHECK(changes(rule("a", "1"), rule("a", "2")) == Lines{"1 rule changed"});
  CHECK(changes(rule("a", "1"), "") == Lines{"1 rule removed"});
  CHECK(changes(rule("a", "1"), rule("a", "1")).empty());
  CHECK(changes("", "[security.servers.s]\nallowed_tools = []\n") == Lines{"1 rule added"});
  CHECK(changes("",
                "[profiles.rules.x]\nmatch = 'a'\n[default.y]\nmatch = 'b'\n[corp.rules.z]\n"
                "match = 'c'\n") == Lines{"3 rules added"});
  CHECK(changes("", "[security]\ndefault = \"block\"\n") == Lines{"settings of the rules changed"});
  CHECK(changes("[security.capabilities]\nmcp_tools = \"ask\"\n",
                "[security.capabilities]\nmcp_tools = \"block\"\n") ==
        Lines{"settings of the rules changed"});
}

TEST_CASE("a summary has the number of rules only if the profile has or had rules") {
  const auto summary = [](std::uint32_t rules, const Lines &lines) {
    PolicyMark mark;
    mark.rules = rules;
    mark.changes = lines;
    return describe_changes(mark);
  };
  CHECK(summary(0, {"policies.own: plugin changed"}) == "policies.own: plugin changed, in force");
  CHECK(summary(3, {"policies.own: added"}) == "policies.own: added, in force (now 3 rules)");
  CHECK(summary(0, {"policies.own: added", "1 rule removed"}) ==
        "policies.own: added, 1 rule removed, in force (now 0 rules)");
}

TEST_CASE("rules whose long names differ only at the end are different rules") {
  const std::string name(100, 'n');
  const std::string a = rule(name + "a", "1"), b = rule(name + "b", "1");
  CHECK(first_policy_mark(policies(a + b)).rules == 2);
  CHECK(changes(a + b, a + rule(name + "b", "2")) == Lines{"1 rule changed"});
  CHECK(changes(rule(name + "a", "2") + b, a + b) == Lines{"1 rule changed"});
}

TEST_CASE("changes of a policy itself are listed") {
  const std::string lists = "[policies.default]\nplugin = \"judge\"\n";
  CHECK(changes("", lists + "x = 1\n") == Lines{"policies.default: configuration changed"});
  CHECK(changes("", "[policies.default]\ncompartment = \"own\"\n") ==
        Lines{"policies.default: plugin changed"});
  const std::string more = "[policies.more]\nplugin = \"other\"\nrules = false\n";
  CHECK(changes(lists, lists + more) == Lines{"policies.more: added"});
  CHECK(changes(lists + more, lists) == Lines{"policies.more: removed"});
  CHECK(changes(lists + more, more + lists) == Lines{"the order of the policies changed"});
  // Both policies receive the rules, but the change is reported only once.
  const std::string both = lists + "[policies.second]\nplugin = \"other\"\n";
  CHECK(changes(both, both + rule("a", "1")) == Lines{"1 rule added"});
}

TEST_CASE("a digest covers keys whose names suggest a credential") {
  const std::string use = "[policies.default]\nplugin = \"judge\"\n";
  // A plugin's own tables may be keyed by tool names, and a rule may be named after what it
  // protects.
  for (const std::string key :
       {"token", "permissions.vault__get_token", "corp.permissions.read_secret"}) {
    INFO(key);
    const std::string was = use + key + " = \"allow\"\n", is = use + key + " = \"block\"\n";
    CHECK(first_policy_mark(policies(was)).digest.size() == 32);
    CHECK(first_policy_mark(policies(was)).digest == first_policy_mark(policies(was)).digest);
    CHECK(changes(was, is) == Lines{"policies.default: configuration changed"});
  }
  const std::string rule = "[security.rules.mcp.a]\nsecret = ";
  CHECK(changes(rule + "\"x\"\n", rule + "\"y\"\n") == Lines{"1 rule changed"});
  const std::string list = "[default.keep_token]\ndecision = ";
  CHECK(changes(list + "\"allow\"\n", list + "\"block\"\n") == Lines{"1 rule changed"});
}

TEST_CASE("a digest does not depend on the order of keys, also if there are credentials") {
  const std::string use = "[policies.default]\nplugin = \"judge\"\n";
  const PolicyMark one = first_policy_mark(policies(use + "token = \"t\"\nurl = \"u\"\n"));
  CHECK(first_policy_mark(policies(use + "url = \"u\"\ntoken = \"t\"\n")).digest == one.digest);
  CHECK(first_policy_mark(policies(use + "token = \"t\"\n")).digest != one.digest);
}

TEST_CASE("an unexpanded reference in a policy is reported") {
  const std::string use = "[policies.default]\nplugin = \"judge\"\n";
  std::vector<PluginUse> with = policies(use + "headers = { Authorization = \"x\" }\n");
  CHECK_FALSE(has_unexpanded_reference(with));
  with[0].config_json = R"({"headers":{"Authorization":"Bearer ${env:TOKEN}"}})";
  CHECK(has_unexpanded_reference(with));
  with[0].config_json = R"({"lists":["a",["${env:TOKEN}"]]})";
  CHECK(has_unexpanded_reference(with));
  with[0].config_json = R"({"profile_rules":[{"layer":"a","sections":{"x":{"if":"'${'"}}}]})";
  CHECK_FALSE(has_unexpanded_reference(with));  // references in rules are not expanded
  CHECK_FALSE(has_unexpanded_reference({}));
}

TEST_CASE(
    "a policy that cannot be replaced is reported with the policy that decides until the restart") {
  Profile now, next;
  PluginUse use;
  use.id = "p";
  use.plugin = "one";
  use.config_json = "{}";
  now.policies = {use};
  use.id = "q";
  now.policies.push_back(use);
  next = now;
  next.policies[0].plugin = "two";
  CHECK(
      keep_fixed(now, &next, true) ==
      Lines{"policies.p: needs a restart; until then, \"one\" stays in force instead of \"two\""});
  CHECK(next.policies == now.policies);
  next.policies.pop_back();
  CHECK(keep_fixed(now, &next, true) ==
        Lines{"policies.q: needs a restart; it stays in force until then"});
  use.id = "r";
  next.policies.push_back(use);
  CHECK(keep_fixed(now, &next, true) ==
        Lines{"policies.r: needs a restart; it is not used until then"});
  std::swap(next.policies[0], next.policies[1]);
  CHECK(keep_fixed(now, &next, true) == Lines{"policies: order changed: needs a restart"});
  next.policies[0].sha256 = "ab";
  CHECK(keep_fixed(now, &next, true) ==
        Lines{"policies.p: needs a restart; the old configuration stays in force until then"});
  // If a policy differs only in its configuration, it keeps the new configuration.
  next.policies[0].config_json = "{\"x\":1}";
  CHECK(keep_fixed(now, &next, true).empty());
  CHECK(next.policies[0].config_json == "{\"x\":1}");
}
