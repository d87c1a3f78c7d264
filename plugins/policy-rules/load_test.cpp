// Tests loading rules: errors with their locations, priorities, layers, and match/action rules.
#include "match_condition.hpp"
#include "rules_test.hpp"

using namespace bulkhead::rules;
using namespace bulkhead::rules::test;

namespace {

// Returns a user's profile with one rule that has these members. If `on`, `if` or `decision` is
// missing, a default is added.
std::string one(std::string_view members) {
  std::string all(members);
  for (const std::string_view pair :
       {R"("on":"mcp.request")", R"("if":"true")", R"("decision":"block")"}) {
    if (all.find(pair.substr(0, pair.find(':') + 1)) != std::string::npos) continue;
    all.append(all.empty() ? "" : ",").append(pair);
  }
  return rules("{\"r\":{" + all + "}}");
}

std::string match_rule(std::string_view members) {
  return config({layer("file", R"({"profiles":{"rules":{"r":{)" + std::string(members) + "}}}}")});
}

}  // namespace

TEST_CASE("errors are sorted by layer and line") {
  const std::string rule = R"j({"on":"mcp.request","if":"true","decision":"nope"})j";
  const std::string text = bad(config(
      {layer("corp", R"j({"security":{"rules":{"mcp":{"z":)j" + rule + "}}}}",
             R"({"security.rules.mcp.z":99})"),
       layer(
           "file",
           R"j({"profiles":{"rules":{"t":{"match":"?"}}},"security":{"typo":1,"rules":{"mcp":{"b":)j" +
               rule + ",\"a\":" + rule + "}}}}",
           R"({"security.typo":21,"security.rules.mcp.b":5,"security.rules.mcp.a":19,
                 "profiles.rules.t":2})")}));
  INFO(text);
  std::string lines;
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string one = text.substr(at, end - at);
    const std::string place = one.substr(0, one.find(": "));
    if (!lines.ends_with(place + " ")) lines += place + " ";
    at = end + 1;
  }
  CHECK(lines == "corp.toml:99 file.toml:2 file.toml:5 file.toml:19 file.toml:21 ");
}

TEST_CASE("errors name the file, line, rule, key and known alternatives") {
  const std::string json = config({layer(
      "file",
      R"j({"security":{"rules":{"mcp":{"a.b":{"on":"mcp.request","if":"true","decision":"block","piority":3}}}}})j",
      R"j({"security":2,"security.rules.mcp.\"a.b\"":12,"security.rules.mcp.\"a.b\".piority":15})j")});
  CHECK(bad(json) ==
        "file.toml:15: security.rules.mcp.\"a.b\".piority: unknown key; did you mean "
        "\"priority\"? Known: on, if, decision, priority, reason, enabled, over, rewrite_target, "
        "rewrite_value, strip_arguments, strip_response");
  has(bad(one(R"("if":"mcp.request.tool_name = 'x'")")), "security.rules.mcp.r.if: 1:23: ");
  has(bad(one(R"("if":"mcp.request.tol_name == 'x'")")), "is not declared");
  has(bad(one(R"("if":"mcp.request.tool_name")")), "a condition must be a bool, not string");
  has(bad(one(R"("if":"event.type == 'x'")")), "event.* is internal");
  has(bad(one(R"("if":"subject.x == 'x'")")), "subject.* is internal");
  has(bad(one(R"("if":"mcp.response.is_error")")), "not available for requests");
  has(bad(one(R"("on":"mcp.response","if":"mcp.request.arguments.x == 1")")),
      "not available for responses");
  has(bad(one(R"("if":1)")), "expected a string");
  has(bad(rules(R"({"r":{"on":"mcp.request","decision":"block"}})")), "the key \"if\" is required");
  has(bad(rules(R"({"r":{"if":"true","decision":"block"}})")), "the key \"on\" is required");
  has(bad(one(R"("on":"mcp.tool_list")")), "is not a supported event");
  has(bad(one(R"("decision":"deny")")), "\"allow\", \"ask\", \"block\" or \"rewrite\"");
  has(bad(one(R"("decision":"warn")")), "\"warn\" is not a decision");
  has(bad(one(R"("on":"mcp.response","decision":"ask")")),
      "approval is not supported for responses");
  has(bad(rules(R"({"default":{}})")), "reserved for the generated rule");
  has(bad(rules("[]")), "expected a table");
  has(bad(security(R"({"rules":{"http":{}}})")), "only MCP is supported");
  has(bad(security(R"({"defualt":"block"})")), "did you mean \"default\"?");
  has(bad(security(R"({"default":"deny"})")), "must be \"allow\"");
  has(bad(security(R"({"servers":{"a":{"allowed_tools":[]}}})")), "an empty list allows no tools");
  has(bad("[]"), "the configuration is invalid");
  has(bad(R"({"profile_rules":1})"), "not an array of layers");
  has(bad(R"({"profile_rules":[{"layer":"x"}]})"), "has no table");
  // All errors are reported, not only the first.
  CHECK(bad(rules(R"({"a":{"on":1},"b":{"on":1}})")).find("\n") != std::string::npos);
}

TEST_CASE("rewrites are validated at load") {
  const std::string head = R"("decision":"rewrite",)";
  const auto target = [&](std::string_view field, std::string_view pattern,
                          std::string_view value) {
    return one(head + "\"rewrite_target\":\"" + std::string(field) + " =~ \\\"" +
               std::string(pattern) + "\\\"\",\"rewrite_value\":\"" + std::string(value) + "\"");
  };
  has(bad(target("name", "a", "b")),
      "security.rules.mcp.r.rewrite_target: \"name\" cannot be rewritten");
  has(bad(target("response.text", "a", "b")), "cannot be rewritten");
  has(bad(target("argumentsx", "a", "b")), "cannot be rewritten");
  has(bad(target("arguments.", "a", "b")), "must not contain empty names");
  has(bad(target("arguments", "(", "b")), "in rewrite_target: missing )");
  has(bad(target("arguments", "(a)", "${x}")), "${x} is not a named group");
  has(bad(target("arguments", "(?P<x>a)", "${x")), "${ without }");
  has(bad(one(head + R"("rewrite_target":"arguments")")),
      "requires rewrite_target and rewrite_value");
  has(bad(one(head + R"("rewrite_target":"arguments ~ \"a\"","rewrite_value":"b")")), "FIELD =~");
  has(bad(one(R"("decision":"rewrite")")), "requires rewrite_target and rewrite_value");
  has(bad(one(R"("rewrite_target":"arguments =~ \"a\"","rewrite_value":"b")")),
      "require decision = \"rewrite\"");
  has(bad(one(head + R"("strip_response":["a"])")), "this requires on = \"mcp.response\"");
  has(bad(one(head + R"("strip_request_headers":["a"])")), "has no headers");
  has(bad(one(head + R"("strip_arguments":["a..b"])")), "must not contain empty names");
  CHECK(good(target("arguments.a.b", "(?P<x>a)", "${x}${x}")).of(Event::request).size() == 2);
}

TEST_CASE("layers have priority ranges and can replace rules") {
  for (const int number : {1, 999}) good(one("\"priority\":" + std::to_string(number)));
  for (const int number : {-1001, -10, 0, 1000, 1001}) {
    has(bad(one("\"priority\":" + std::to_string(number))), "your rules (1 to 999)");
  }
  has(bad(one("\"priority\":-10")), "priorities below 0 are reserved for the corporation");
  has(bad(one("\"priority\":1.5")), "a whole number");
  const auto rule = [](std::string_view layer_name, std::string_view id, std::string_view decision,
                       int priority) {
    return layer(layer_name, R"({"security":{"rules":{"mcp":{")" + std::string(id) +
                                 R"(":{"on":"mcp.request","if":"true","decision":")" +
                                 std::string(decision) + R"(","priority":)" +
                                 std::to_string(priority) + "}}}}}");
  };
  World w(config({rule("corp", "no", "block", -10), rule("file", "yes", "allow", 1)}));
  CHECK(w.decide("s", "t") == "block no");
  has(bad(config({rule("corp", "no", "block", 5)})), "the corporation's profile (-1000 to -1)");
  has(bad(config({rule("corp", "no", "block", -10), rule("file", "no", "allow", 1)})),
      "the corporation's profile has a rule with this name (corp.toml), which cannot be replaced");
  // A rule in a higher layer completely replaces the rule with the same name in a lower layer.
  World over(config({rule("user", "x", "block", 1), rule("file", "x", "allow", 500)}));
  CHECK(over.decide("s", "t") == "allow x");
  World off(config({rule("user", "x", "block", 1),
                    layer("file", R"({"security":{"rules":{"mcp":{"x":{"on":"mcp.request",
                      "if":"true","decision":"block","enabled":false}}}}})")}));
  CHECK(off.decide("s", "t") == "allow");
  has(bad(config({layer("corp", R"({"security":{"default":"block"}})"),
                  layer("file", R"({"security":{"default":"allow"}})")})),
      "the corporation's profile sets \"block\"");
  CHECK(World(config({layer("user", R"({"security":{"default":"block"}})"),
                      layer("file", R"({"security":{"default":"ask"}})")}))
            .decide("s", "t") == "ask");
}

TEST_CASE(
    "repeating the corporation's default in another layer does not make the default changeable") {
  const std::string corp = layer("corp", R"({"security":{"default":"block"}})");
  const std::string says = "the corporation's profile sets \"block\" (corp.toml)";
  // The default is set in both syntaxes, first in one layer and then in two.
  has(bad(config({corp, layer("file", R"({"security":{"default":"allow",
      "capabilities":{"mcp_tools":"block"}}})")})),
      says);
  has(bad(config({corp, layer("file", R"({"security":{"default":"block",
      "capabilities":{"mcp_tools":"allow"}}})")})),
      says);
  const std::string same = layer("user", R"({"security":{"default":"block"}})");
  has(bad(config({corp, same, layer("file", R"({"security":{"default":"allow"}})")})), says);
  has(bad(config(
          {corp, same, layer("file", R"({"security":{"capabilities":{"mcp_tools":"audit"}}})")})),
      says);
  CHECK(World(config({corp, same})).decide("s", "t") == "block");
  // If the corporation's profile sets the default twice, the last value applies.
  has(bad(config({layer("corp", R"({"security":{"default":"block",
                  "capabilities":{"mcp_tools":"allow"}}})"),
                  layer("file", R"({"security":{"default":"allow"}})")})),
      says);
}

TEST_CASE("match/action rules are evaluated") {
  World w(config({layer("corp", R"j({"corp":{"rules":{"no-push":{"match":
             "mcp.tool_call.name == \"push\" && mcp.server.name == \"git\"", "action":"block"}}}})j"),
                  layer("file", R"j({"profiles":{"rules":{
             "pii":{"match":"mcp.request.arguments.contains_pii()","action":"ask","reason":"look"},
             "answers":{"match":"mcp.response.content.contains(\"top secret\")","action":"block"},
             "ok":{"match":"mcp.server.name.startsWith(\"g\") || (mcp.tool_call.name.endsWith(\"_list\"))",
                   "action":"allow","priority":20,"name":"ok_rule","detection_level":"low",
                   "managed":{"kind":"mcp_tool"}},
             "off":{"match":"has(mcp.method)","action":"block","enabled":false}}},
             "default":{"deny":{"match":"has(mcp.method)","action":"block"}}})j")}));
  CHECK(w.decide("git", "push") == "block corp.rules.no-push");
  CHECK(w.decide("git", "pull") == "allow profiles.rules.ok");
  CHECK(w.decide("x", "the_list") == "allow profiles.rules.ok");
  CHECK(w.decide("x", "t", R"({"to":"a@b"})") == "ask profiles.rules.pii");
  CHECK(w.decide("x", "t") == "block default.deny");
  CHECK(w.observe("x", "t", R"({"content":[{"text":"it is top secret"}]})") ==
        "block profiles.rules.answers");
  CHECK(w.observe("x", "t", R"({"content":[]})") == "allow");
  CHECK_FALSE(w.shows("x", "t") == false);  // with other arguments, the call may require approval
  // Match/action rules are evaluated before the generated default rule.
  CHECK(w.set.of(Event::request).back().id == "security.rules.mcp.default");
}

TEST_CASE("a condition on a field that the call does not have is false") {
  const auto cel = [](std::string_view text) {
    const auto made = match_condition(text);
    return made ? made->cel : "refused " + made.error();
  };
  CHECK(cel("mcp.tool_call.name != \"x\"") ==
        "(mcp.request.tool_name != '' && mcp.request.tool_name != 'x')");
  CHECK(cel("mcp.tool_call.name == \"x\" && mcp.server.name == 'y'") ==
        "mcp.request.tool_name == 'x' && mcp.request.server_name == 'y'");
  CHECK(cel("has(mcp.tool_call.name)") == "(mcp.request.tool_name != '')");
  // In the string of a match/action rule, a backslash is a literal character.
  CHECK(cel(R"(mcp.server.name.matches("\d'"))") == R"(mcp.request.server_name.matches('\\d\''))");
  CHECK(cel("!has(mcp.method)") == "refused 1: negation is not supported; use !=");
  CHECK(cel("mcp.server.nam == 'x'").starts_with("refused "));
  CHECK(cel("http.host == 'x'").find("unknown field") != std::string::npos);
  CHECK(cel("mcp.tool_list == 'x'").find("would never match") != std::string::npos);
  CHECK(cel("mcp.method == 5").find("expected a string") != std::string::npos);
  CHECK(cel("mcp.method.size()").find("known functions are contains") != std::string::npos);
  CHECK(cel("mcp.method == 'a' mcp").find("&&, || or the end") != std::string::npos);
  CHECK(cel(std::string(100, '(')).find("64 nested brackets") != std::string::npos);
}

TEST_CASE("invalid match/action rules are rejected") {
  const std::string match = R"j("match":"has(mcp.method)")j";
  has(bad(match_rule(match + R"(,"action":"rewrite")")), "cannot express rewrites");
  has(bad(match_rule(match + R"(,"action":"preprocess")")), "does not support this action");
  has(bad(match_rule(match + R"(,"action":"deny")")), "\"allow\", \"ask\" or \"block\"");
  has(bad(match_rule(R"("if":"true","action":"block")")), "the other rule syntax");
  has(bad(match_rule(R"("action":"block")")), "the key \"match\" (a condition) is required");
  has(bad(match_rule(R"("match":"event.x == 'a'","action":"block")")), "unknown field");
  has(bad(match_rule(match + R"(,"action":"block","priorty":5)")), "did you mean \"priority\"?");
  for (const std::string_view number : {"-10", "0", "9", "1001"}) {
    has(bad(match_rule(match + R"(,"action":"block","priority":)" + std::string(number))),
        "[profiles.rules] (10 to 1000)");
  }
  CHECK(good(match_rule(match + R"(,"action":"block","priority":"default")"))
            .of(Event::request)[0]
            .priority == 1001);
  has(bad(config({layer("file", R"({"corp":{"rules":{}}})")})),
      "only in the corporation's profile");
  has(bad(config({layer("file", R"({"profiles":{"rules":{"A B":{}}}})")})), "a rule id must have");
  // Only the corporation's profile may set corp_locked to true.
  has(bad(match_rule(match + R"(,"action":"block","corp_locked":true)")),
      "only rules in the corporation's profile");
  good(match_rule(match + R"(,"action":"block","corp_locked":false)"));
  good(config({layer("corp", R"({"corp":{"rules":{"r":{)" + match +
                                 R"(,"action":"block","corp_locked":true}}}})")}));
  for (const std::string_view section : {R"("profiles":{"rules":{"r":{)", R"("default":{"r":{)"}) {
    const std::string end = section.starts_with("\"p") ? "}}}}" : "}}}";
    has(bad(config(
            {layer("corp", "{" + std::string(section) + match + R"(,"action":"block")" + end)})),
        "lower precedence than user rules");
  }
}
