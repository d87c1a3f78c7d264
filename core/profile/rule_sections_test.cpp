// Tests which rule sections a policy plugin receives.
#include <catch2/catch.hpp>

#include "layers/load.hpp"
#include "layers/profile_test_util.hpp"

using namespace bulkhead;
using namespace bulkhead::test;

namespace {

const ProfileLayer base = {"builtin", "", R"([policies.default]
plugin = "policy-allow"
with_rules = "judge"
)"};

}  // namespace

TEST_CASE(
    "a profile with rules replaces the default policy plugin; a profile without rules keeps it") {
  CHECK(good({base}).policies.at(0).plugin == "policy-allow");
  CHECK(good({base}).policies.at(0).config_json == "{}");
  const Profile with = good({base, {"file", "a.toml", "[security]\ndefault = \"block\"\n"}});
  REQUIRE(with.policies.size() == 1);
  CHECK(with.policies[0].id == "default");
  CHECK(with.policies[0].plugin == "judge");
  // The user's own plugin is kept.
  const Profile own = good(
      {base, {"file", "a.toml", "[policies.default]\nplugin = \"mine\"\nx = 1\n[security]\n"}});
  CHECK(own.policies.at(0).plugin == "mine");
  CHECK(own.policies.at(0).config_json.starts_with(R"({"x":1,"profile_rules":[{"layer":)"));
}

TEST_CASE("rules have the locations of their keys, separately for each layer") {
  const Profile profile = good({base,
                                {"user", "u.json", R"({"security": {"rules": {"mcp": {
  "a": {"if": "true",
        "decision": "block"}}}}})"},
                                {"file", "a.toml", R"(
[security.rules.mcp.a]
priority = 5
rewrite_value = "${name}"
[corp.rules."x.y"]
match = 'has(mcp.method)'
)"}});
  CHECK(profile.policies.at(0).config_json ==
        R"({"profile_rules":[{"layer":"user","file":"u.json","sections":{"security":{"rules":)"
        R"({"mcp":{"a":{"if":"true","decision":"block"}}}}},"lines":{"security":1,)"
        R"("security.rules":1,"security.rules.mcp":1,"security.rules.mcp.a":2,)"
        R"("security.rules.mcp.a.if":2,"security.rules.mcp.a.decision":3}},)"
        R"x({"layer":"file","file":"a.toml","sections":{"security":{"rules":{"mcp":{"a":)x"
        R"x({"priority":5,"rewrite_value":"${name}"}}}},"corp":{"rules":{"x.y":{"match":)x"
        R"x("has(mcp.method)"}}}},"lines":{"security":2,"security.rules":2,)x"
        R"x("security.rules.mcp":2,"security.rules.mcp.a":2,"security.rules.mcp.a.priority":3,)x"
        R"x("security.rules.mcp.a.rewrite_value":4,"corp":5,"corp.rules":5,)x"
        R"x("corp.rules.\"x.y\"":5,"corp.rules.\"x.y\".match":6}}]})x");
}

TEST_CASE("rules are rejected if there is no policy that evaluates them") {
  const auto errors = bad({{"file", "a.toml", "\n[security.rules.mcp.a]\nif = \"true\"\n"}});
  REQUIRE(errors.size() == 1);
  CHECK(errors[0].line == 2);
  CHECK(has(errors[0].what, "no policy plugin evaluates them"));
  CHECK(has(bad({base, {"file", "a.toml", "security = 1\n"}})[0].what, "table"));
  CHECK(has(bad({base, {"file", "a.toml", "[security]\nsince = 2026-01-01\n"}})[0].what,
            "dates are not supported"));
  CHECK(has(bad({{"file", "a.toml", "[policies.a]\nplugin = \"x\"\nprofile_rules = []\n"}})[0].what,
            "generated from the profile's rules"));
}

TEST_CASE("a repository's file cannot contain policies") {
  ProfileLayer project{"project", "/w/.bulkhead.toml", "[security]\ndefault = \"allow\"\n"};
  project.project = true;
  const Profile profile = good({base, project});
  CHECK(profile.policies.at(0).plugin == "policy-allow");
  REQUIRE(profile.notes.size() == 1);
  CHECK(has(profile.notes[0], "skipped: security"));
}

TEST_CASE(
    "policies keep their file order, and the profile selects the policies that receive the rules") {
  const Profile profile = good({base, {"file", "a.toml", R"(
[policies.zebra]
plugin = "z"
[policies.default]
plugin = "policy-rules"
[policies.ant]
plugin = "a"
rules = false
[security]
default = "block"
)"}});
  REQUIRE(profile.policies.size() == 3);
  CHECK(profile.policies[0].id == "zebra");
  CHECK(profile.policies[1].id == "default");
  CHECK(profile.policies[2].id == "ant");
  CHECK(has(profile.policies[0].config_json, "profile_rules"));
  CHECK(has(profile.policies[1].config_json, "profile_rules"));
  CHECK(profile.policies[2].config_json == "{}");
  // Policies of lower layers are removed.
  CHECK(good({base, {"file", "a.toml", "[policies.mine]\nplugin = \"x\"\n"}}).policies.size() == 1);
}

TEST_CASE("rules that no policy receives are an error") {
  const auto errors =
      bad({base, {"file", "a.toml", "[policies.x]\nplugin = \"x\"\nrules = false\n[security]\n"}});
  REQUIRE(errors.size() == 1);
  CHECK(has(errors[0].what, "no policy plugin evaluates them"));
}
