// Tests the verdicts for calls, results and lists.
#include "rules_test.hpp"

#include <array>

using namespace bulkhead::rules;
using namespace bulkhead::rules::test;

TEST_CASE("the first rule by priority and id decides") {
  World w(rules(R"j({
    "b": {"on": "mcp.request", "if": "mcp.request.tool_name == 'x'", "decision": "block", "priority": 20},
    "a": {"on": "mcp.request", "if": "mcp.request.server_name == 's'", "decision": "allow", "priority": 20},
    "first": {"on": "mcp.request", "if": "mcp.request.tool_name == 'y'", "decision": "ask", "priority": 1},
    "off": {"on": "mcp.request", "if": "true", "decision": "block", "priority": 2, "enabled": false}
  })j"));
  CHECK(w.decide("s", "x") == "allow a");
  CHECK(w.decide("t", "x") == "block b");
  CHECK(w.decide("s", "y") == "ask first");
  CHECK(w.decide("t", "z") == "allow");
}

TEST_CASE("without a matching rule, the profile's default decides") {
  CHECK(World(security("{}")).decide("s", "x") == "allow");
  CHECK(World(security(R"({"default": "block"})")).decide("s", "x") == "block");
  CHECK(World(security(R"({"default": "ask"})")).decide("s", "x") == "ask");
  CHECK(World(security(R"({"capabilities": {"mcp_tools": "audit"}})")).decide("s", "x") == "allow");
  CHECK(World(security(R"({"capabilities": {"mcp_tools": "ask"}})")).decide("s", "x") == "ask");
  World none("{}");
  CHECK(none.decide("s", "x") == "allow");
  CHECK(none.set.needs == 0);
}

TEST_CASE("a call is rejected if a rule reads a definition that programs read differently") {
  World w(rules(R"j({
    "hint": {"on": "mcp.request", "if": "has(mcp.tool.annotations.destructiveHint) && mcp.tool.annotations.destructiveHint",
             "decision": "block"},
    "text": {"on": "mcp.request", "if": "mcp.tool.description.contains('EVIL')", "decision": "block"}
  })j"));
  Call c = call("s", "x", "{}");
  for (const char *members :
       {R"("annotations":{"destructiveHint":true,"destructiveHint":false})",
        R"("description":"EVIL","inputSchema":{"type":"object","type":"object"})"}) {
    INFO(members);
    const std::string definition = std::string(R"({"name":"x",)") + members + "}";
    c.definition = definition;
    CHECK(w.decide(c) == "block security.mcp.evaluation_error");
  }
  c.definition = R"({"name":"x","annotations":{"destructiveHint":false},"description":"good"})";
  CHECK(w.decide(c) == "allow");
}

TEST_CASE("every root has the value from the call") {
  Call c = call("github", "delete", R"({"path": "/etc/passwd", "n": 3, "tags": ["a", "b"]})");
  c.meta = R"({"trace": "t1"})";
  c.definition =
      R"({"name":"delete","description":"Deletes it","annotations":{"destructiveHint":true}})";
  c.pin = BH_PIN_SAME;
  for (const std::string condition : {
           "mcp.request.method == 'tools/call'",
           "mcp.request.server_name == 'github' && mcp.request.tool_name == 'delete'",
           "mcp.request.uri == '' && mcp.request.prompt_name == ''",
           "mcp.request.arguments.path.startsWith('/etc/') && mcp.request.arguments.n == 3",
           "mcp.request.arguments.tags.exists(t, t == 'b') && !has(mcp.request.arguments.none)",
           "mcp.request.arguments_text.contains('/etc/passwd')",
           "mcp.request.meta.trace == 't1'",
           "mcp.tool.annotations.destructiveHint && mcp.tool.description == 'Deletes it'",
           "mcp.tool.pinned",
           "client.process_name == 'claude' && client.transport == 'http'",
           "client.principal == 'anna' && client.peer == '127.0.0.1'",
           "client.claimed_name == 'Claude Code'",
           "session.id == '7' && session.calls == 3 && session.age == duration('5s')",
           "time > timestamp('2026-01-01T00:00:00Z') && time.getFullYear() == 2026",
       }) {
    INFO(condition);
    World w(rules("{\"r\": {\"on\": \"mcp.request\", \"decision\": \"block\", \"if\": \"" +
                  condition + "\"}}"));
    CHECK(w.decide(c) == "block r");
  }
  Call completes = call("s", "p");
  completes.method = "completion/complete";
  completes.argument = R"({"name":"path","value":"/etc/"})";
  completes.context = R"({"arguments":{"host":"db"}})";
  completes.extra = R"({"x":[1]})";
  for (const std::string condition :
       {"mcp.completion.argument.value.startsWith('/etc/')",
        "mcp.completion.context.arguments.host == 'db'", "mcp.request.extra.x[0] == 1",
        "size(mcp.request.extra) > 0 && mcp.request.arguments == {}"}) {
    INFO(condition);
    World w(rules("{\"r\": {\"on\": \"mcp.request\", \"decision\": \"block\", \"if\": \"" +
                  condition + "\"}}"));
    CHECK((w.set.needs & BH_POLICY_READS_ARGUMENTS) != 0);
    CHECK(w.decide(completes) == "block r");
    CHECK(w.decide(call("s", "t")) != "block r");
  }
  World none(rules(R"j({"r": {"on": "mcp.request", "decision": "block",
      "if": "mcp.request.extra != {} || mcp.completion.argument != {} || mcp.completion.context != {}"}})j"));
  CHECK(none.decide("s", "t") == "allow");
  CHECK(none.decide(completes) == "block r");
  completes.extra = completes.context = {};
  completes.argument = R"(["no object"])";
  CHECK(none.decide(completes) == "block security.mcp.evaluation_error");

  Call read = call("files", "file:///a");
  read.method = "resources/read";
  World by_uri(rules(R"j({"r": {"on": "mcp.request", "decision": "block",
      "if": "mcp.request.uri == 'file:///a' && mcp.request.tool_name == ''"}})j"));
  CHECK(by_uri.decide(read) == "block r");
  REQUIRE(by_uri.set.warnings.size() == 1);
  CHECK(by_uri.set.warnings[0].find("rule security.rules.mcp.r compares mcp.request.uri,") !=
        std::string::npos);
  World by_normalized(rules(R"j({"r": {"on": "mcp.request", "decision": "block",
      "if": "mcp.request.uri_normalized == 'file:///a'"}})j"));
  CHECK(by_normalized.set.warnings.empty());
  World never(rules(R"j({"r": {"on": "mcp.request", "decision": "block",
      "if": "mcp.request.uri_normalized == 'HTTP://h'"}})j"));
  REQUIRE(never.set.warnings.size() == 1);
  has(never.set.warnings[0],
      R"("HTTP://h", which never matches: the normalized form is "http://h/")");
  CHECK(by_normalized.decide(read) == "block r");
  read.name = "FILE:///x/%2e%2E/%61";
  CHECK(by_uri.decide(read) == "allow");
  CHECK(by_normalized.decide(read) == "block r");
  CHECK_FALSE(by_normalized.judge.shows(by_normalized.set, read));
  read.name = "file:///{path}";
  CHECK(by_normalized.judge.shows(by_normalized.set, read));
  CHECK(by_normalized.decide("files", "file:///a") == "allow");  // a tool name, not a URI
}

TEST_CASE("a rule that reads the normalized form of an ambiguous URI blocks the request") {
  World below_srv(rules(R"j({"r": {"on": "mcp.request", "decision": "allow",
      "if": "mcp.request.uri_normalized.startsWith('file:///srv/')"},
      "z": {"on": "mcp.request", "decision": "block", "priority": 900, "if": "true"}})j"));
  Call read = call("files", "file:///srv/a#b");
  read.method = "resources/read";
  CHECK(below_srv.decide(read) == "allow r");
  for (const char *uri : {"file:///srv/a#/../../b", "file:///srv/a?/%2e./../b"}) {
    INFO(uri);
    read.name = uri;
    CHECK(below_srv.decide(read) == "block security.mcp.evaluation_error");
  }
  read.name = "file:///srv//../b";
  CHECK(below_srv.decide(read) == "block z");
}

TEST_CASE("rules that read members without has() cause warnings") {
  const auto warnings = [](const std::string &on, const std::string &condition) {
    const RuleSet set = good(rules("{\"r\": {\"on\": \"" + on +
                                   "\", \"decision\": \"block\", \"if\": " + condition + "}}"));
    return set.warnings;
  };
  // Each row contains a condition, the member that it reads without a test, and the test that
  // should be suggested.
  const std::vector<std::array<std::string, 3>> unguarded = {
      {"'mcp.request.arguments.path == 1'", "mcp.request.arguments.path",
       "has(mcp.request.arguments.path)"},
      {"'mcp.request.arguments.a.b == 1'", "mcp.request.arguments.a.b",
       "has(mcp.request.arguments.a) && has(mcp.request.arguments.a.b)"},
      {"'has(mcp.request.arguments.a) && mcp.request.arguments.a.b == 1'",
       "mcp.request.arguments.a.b", "has(mcp.request.arguments.a.b)"},
      {"'has(mcp.request.arguments.a.b) && mcp.request.arguments.a.b == 1'",
       "mcp.request.arguments.a", "has(mcp.request.arguments.a)"},
      {"'has(mcp.request.arguments.a) || mcp.request.arguments.a == 1'", "mcp.request.arguments.a",
       "has(mcp.request.arguments.a)"},
      {"'!has(mcp.request.arguments.a) && mcp.request.arguments.a == 1'", "mcp.request.arguments.a",
       "has(mcp.request.arguments.a)"},
      {"'has(mcp.request.arguments.a) ? true : mcp.request.arguments.a == 1'",
       "mcp.request.arguments.a", "has(mcp.request.arguments.a)"},
      {"'has(mcp.request.arguments.b) && mcp.request.arguments.a == 1'", "mcp.request.arguments.a",
       "has(mcp.request.arguments.a)"},
      {"'mcp.request.meta.x.exists(i, i == 1)'", "mcp.request.meta.x", "has(mcp.request.meta.x)"},
      {"'mcp.request.extra[\"x-y\"] == 1'", "mcp.request.extra[\"x-y\"]",
       "\"x-y\" in mcp.request.extra"},
      {"'mcp.tool.annotations.readOnlyHint'", "mcp.tool.annotations.readOnlyHint",
       "has(mcp.tool.annotations.readOnlyHint)"}};
  const auto json = [](const std::string &condition) {  // returns '...' as a JSON string
    std::string out = "\"";
    for (const char c : condition.substr(1, condition.size() - 2)) {
      if (c == '"') out += '\\';
      out += c;
    }
    return out + "\"";
  };
  for (const auto &[condition, member, test] : unguarded) {
    INFO(condition);
    const auto found = warnings("mcp.request", json(condition));
    REQUIRE(found.size() == 1);
    has(found[0], "rule security.rules.mcp.r reads " + member + " without has()");
    has(found[0], "Add `" + test + "`");
  }
  for (const std::string condition :
       {"'has(mcp.request.arguments.a) && mcp.request.arguments.a == 1'",
        "'mcp.request.arguments.a == 1 && has(mcp.request.arguments.a)'",
        "'!has(mcp.request.arguments.a) || mcp.request.arguments.a == 1'",
        "'has(mcp.request.arguments.a) ? mcp.request.arguments.a == 1 : false'",
        "'!has(mcp.request.arguments.a) ? false : mcp.request.arguments.a == 1'",
        "'!(!has(mcp.request.arguments.a) || mcp.request.arguments.a != 1)'",
        "'has(mcp.request.arguments.a) && (mcp.request.tool_name == \"x\" || "
        "mcp.request.arguments.a == 1)'",
        "'has(mcp.request.arguments.a) && has(mcp.request.arguments.a.b) && "
        "mcp.request.arguments.a.b == 1'",
        "'\"a\" in mcp.request.arguments && mcp.request.arguments[\"a\"] == 1'",
        "'mcp.request.arguments == {} && client.claimed_name == \"\" && session.calls > 1'",
        "'mcp.request.arguments.exists(name, name == \"x\")'"}) {
    INFO(condition);
    CHECK(warnings("mcp.request", json(condition)).empty());
  }
  // Reading the same member twice causes only one warning. Structured content may be missing from a
  // response, so reading it without a test causes a warning.
  CHECK(warnings("mcp.request", json("'mcp.request.arguments.a == 1 || mcp.request.arguments.a == "
                                     "2 || mcp.request.arguments.b == 1'"))
            .size() == 2);
  CHECK(warnings("mcp.response", json("'mcp.response.structured == 1'")).size() == 1);
  CHECK(warnings("mcp.response",
                 json("'has(mcp.response.structured) && mcp.response.structured == 1'"))
            .empty());
  CHECK(warnings("mcp.response", json("'mcp.response.text == \"x\"'")).empty());
}

TEST_CASE("response rules have their own roots") {
  const auto said = [](const std::string &condition, std::string_view result) {
    World w(rules("{\"r\": {\"on\": \"mcp.response\", \"decision\": \"block\", \"if\": \"" +
                  condition + "\"}}"));
    return w.observe("s", "t", result);
  };
  const std::string_view ok =
      R"({"content":[{"type":"text","text":"the key is 42"}],"structuredContent":{"n":1}})";
  CHECK(said("mcp.response.result_status == 'ok' && !mcp.response.is_error", ok) == "block r");
  CHECK(said("mcp.response.result_status == 'error'", R"({"isError":true})") == "block r");
  CHECK(said("mcp.response.content.exists(c, c.text.contains('key'))", ok) == "block r");
  CHECK(said("mcp.response.text.matches('[0-9]+')", ok) == "block r");
  CHECK(said("mcp.response.structured.n == 1", ok) == "block r");
  CHECK(said("has(mcp.response.structured)", R"({"content":[]})") == "allow");
  // A server cannot hide its content behind the member of another method.
  World w(rules(R"j({"r":{"on":"mcp.response","decision":"block",)j"
                R"j("if":"mcp.response.content.exists(c, c.text == 'x')"}})j"));
  for (const auto &[method, name] : {std::pair{"tools/call", "content"},
                                     {"resources/read", "contents"},
                                     {"prompts/get", "messages"}}) {
    std::string result = "{";
    for (const std::string other : {"content", "contents", "messages"}) {
      if (other != name) result += "\"" + other + "\":[],";
    }
    result += "\"" + std::string(name) + R"(":[{"text":"x"}]})";
    INFO(method << result);
    CHECK(w.observe("s", "t", result, method) == "block r");
  }
  CHECK(said("mcp.request.tool_name == 't' && client.principal == 'anna'", "{}") == "block r");
}

TEST_CASE("an evaluation error rejects the call and has a position") {
  World w(config({layer(
      "file",
      R"j({"security":{"rules":{"mcp":{"r":{"on":"mcp.request","decision":"allow","if":"mcp.request.arguments.n > 3"}}}}})j",
      R"({"security.rules.mcp.r":12})")}));
  CHECK(w.decide("s", "t", R"({"n":4})") == "allow r");
  const Verdict verdict = w.judge.decide(w.set, call("s", "t", R"({"n":"four"})"));
  CHECK(World::shown(verdict) == "block security.mcp.evaluation_error");
  CHECK(verdict.reason ==
        "rule security.rules.mcp.r (file.toml:12) cannot be evaluated: 1:25: no such overload: "
        "string > int");
  CHECK(w.decide("s", "t", "{}") == "block security.mcp.evaluation_error");
  CHECK(w.decide("s", "t", "") == "block security.mcp.evaluation_error");
  for (const std::string_view arguments :
       {R"({"n":4,"n":5})", R"({"a":{"n":4,"n":5}})", "{", "[4]", "4", R"({"n":"\ud800"})"}) {
    INFO(arguments);
    CHECK(w.decide("s", "t", arguments) == "block security.mcp.evaluation_error");
  }
  World answers(rules(R"j({"r": {"on": "mcp.response", "decision": "block",
                                 "if": "mcp.response.structured.n > 3"}})j"));
  CHECK(answers.observe("s", "t", R"({"structuredContent":{"n":1}})") == "allow");
  CHECK(answers.observe("s", "t", "{}") == "block security.mcp.evaluation_error");
  CHECK(answers.observe("s", "t", R"({"a":1,"a":2})") == "block security.mcp.evaluation_error");
  CHECK(answers.observe("s", "t", "[]") == "block security.mcp.evaluation_error");
}

TEST_CASE("arguments are parsed only if a rule may read them") {
  World w(rules(R"j({"r": {"on": "mcp.request", "decision": "block",
      "if": "mcp.request.server_name == 's' && mcp.request.arguments.n > 3"}})j"));
  CHECK(w.decide("other", "t", "{broken") == "allow");
  CHECK(w.decide("s", "t", "{broken") == "block security.mcp.evaluation_error");
  CHECK(w.set.needs == (BH_POLICY_DECIDES | BH_POLICY_READS_ARGUMENTS | BH_POLICY_FILTERS_LISTS));
  CHECK(good(rules(R"j({"r": {"on": "mcp.request", "decision": "ask", "if": "mcp.tool.pinned"}})j"))
            .needs == BH_POLICY_DECIDES);
  CHECK(good(rules(R"j({"r": {"on": "mcp.request", "decision": "ask",
                              "if": "mcp.tool.description == ''"}})j"))
            .needs == (BH_POLICY_DECIDES | BH_POLICY_READS_DEFINITION));
  CHECK(
      good(rules(R"j({"r": {"on": "mcp.response", "decision": "block", "if": "true"}})j")).needs ==
      BH_POLICY_READS_RESULTS);
}

TEST_CASE("only the target of a rewrite is changed in a request") {
  World w(rules(R"j({
    "mask": {"on": "mcp.request", "if": "mcp.request.tool_name == 'all'", "decision": "rewrite",
             "rewrite_target": "arguments =~ \"(?P<kind>sk|pk)-[a-z0-9]+\"", "rewrite_value": "${kind}-***"},
    "path": {"on": "mcp.request", "if": "mcp.request.tool_name == 'path'", "decision": "rewrite",
             "rewrite_target": "arguments.auth.token =~ \"^.*$\"", "rewrite_value": "\\1 $5 {}"},
    "some": {"on": "mcp.request", "if": "mcp.request.tool_name == 'some'", "decision": "rewrite",
             "rewrite_target": "arguments.list.1 =~ \"a\"", "rewrite_value": "b"},
    "any": {"on": "mcp.request", "if": "mcp.request.tool_name == 'any'", "decision": "rewrite",
             "rewrite_target": "arguments.list.*.x =~ \"a\"", "rewrite_value": "b"},
    "strip": {"on": "mcp.request", "if": "mcp.request.tool_name == 'strip'", "decision": "rewrite",
             "strip_arguments": ["secret", "a.b", "list.*.c"]}
  })j"));
  CHECK(
      w.decide("s", "all",
               R"({"a":"sk-1 pk-2","b":[{"c":"x sk-zz"}],"n":1.10,"k":12345678901234567890123})") ==
      R"(rewrite mask {"a":"sk-*** pk-***","b":[{"c":"x sk-***"}],"n":1.10,"k":12345678901234567890123})");
  CHECK(w.decide("s", "all", R"({"a":"nothing"})") == "allow mask");
  CHECK(w.decide("s", "all", "") == "allow mask");
  CHECK(w.decide("s", "all", R"({"a":"sk-\u0061"})") == R"(rewrite mask {"a":"sk-***"})");
  CHECK(w.decide("s", "path", R"({"auth":{"token":"t","x":"t"},"token":"t"})") ==
        R"(rewrite path {"auth":{"token":"\\1 $5 {}","x":"t"},"token":"t"})");
  CHECK(w.decide("s", "some", R"({"list":["a","a",["a"]]})") ==
        R"(rewrite some {"list":["a","b",["a"]]})");
  CHECK(w.decide("s", "any", R"({"list":[{"x":"a"},{"y":"a","x":["a"]}],"x":"a"})") ==
        R"(rewrite any {"list":[{"x":"b"},{"y":"a","x":["b"]}],"x":"a"})");
  CHECK(
      w.decide("s", "strip",
               R"({"secret":{"x":[1,{"y":2}]},"a":{"b":"s","c":1},"list":[{"c":[1]},{"d":2}]})") ==
      R"(rewrite strip {"a":{"c":1},"list":[{},{"d":2}]})");
  CHECK(w.decide("s", "strip", R"({"b":1})") == "allow strip");
  CHECK(w.decide("s", "all", "{broken") == "block security.mcp.evaluation_error");
}

TEST_CASE("responses are rewritten or withheld") {
  World w(rules(R"j({
    "mask": {"on": "mcp.response", "if": "mcp.request.tool_name == 'text'", "decision": "rewrite",
             "rewrite_target": "response.text =~ \"secret\"", "rewrite_value": "***"},
    "content": {"on": "mcp.response", "if": "mcp.request.tool_name == 'content'", "decision": "rewrite",
             "rewrite_target": "response.content =~ \"secret\"", "rewrite_value": "***"},
    "path": {"on": "mcp.response", "if": "mcp.request.tool_name == 'path'", "decision": "rewrite",
             "rewrite_target": "response.structuredContent.a =~ \"secret\"", "rewrite_value": "***"},
    "strip": {"on": "mcp.response", "if": "mcp.request.tool_name == 'strip'", "decision": "rewrite",
             "strip_response": ["structuredContent"]},
    "no": {"on": "mcp.response", "priority": 500, "if": "mcp.response.text.contains('secret')", "decision": "block"}
  })j"));
  const std::string_view result =
      R"({"content":[{"type":"text","text":"a secret"}],"structuredContent":{"a":"secret"}})";
  CHECK(
      w.observe("s", "text", result) ==
      R"(rewrite mask {"content":[{"type":"text","text":"a ***"}],"structuredContent":{"a":"***"}})");
  CHECK(
      w.observe("s", "content", result) ==
      R"(rewrite content {"content":[{"type":"text","text":"a ***"}],"structuredContent":{"a":"secret"}})");
  CHECK(
      w.observe("s", "path", result) ==
      R"(rewrite path {"content":[{"type":"text","text":"a secret"}],"structuredContent":{"a":"***"}})");
  CHECK(w.observe("s", "strip", result) ==
        R"(rewrite strip {"content":[{"type":"text","text":"a secret"}]})");
  CHECK(w.observe("s", "other", result) == "block no");
  CHECK(w.observe("s", "other", R"({"content":[{"text":"se\u0063ret"}]})") == "block no");
  CHECK(w.observe("s", "other", R"({"content":[]})") == "allow");
  // Response rules do not affect requests.
  CHECK(w.decide("s", "other") == "allow");
}

TEST_CASE("response.content means the content of tools, resources and prompts") {
  World w(rules(R"j({
    "all": {"on": "mcp.response", "if": "mcp.request.tool_name != 'path'", "decision": "rewrite",
            "rewrite_target": "response.content =~ \"secret\"", "rewrite_value": "***"},
    "path": {"on": "mcp.response", "if": "mcp.request.tool_name == 'path'", "decision": "rewrite",
             "rewrite_target": "response.content.*.text =~ \"secret\"", "rewrite_value": "***"}})j"));
  const auto said = [&](std::string_view method, std::string_view name, std::string_view result) {
    Call c = call("s", name);
    c.method = method;
    return World::shown(w.judge.observe(w.set, c, result));
  };
  CHECK(
      said("resources/read", "mem://r", R"({"contents":[{"uri":"mem://r","text":"a secret"}]})") ==
      R"(rewrite all {"contents":[{"uri":"mem://r","text":"a ***"}]})");
  CHECK(
      said(
          "prompts/get", "p",
          R"({"description":"secret","messages":[{"content":{"type":"text","text":"secret"}}]})") ==
      R"(rewrite all {"description":"secret","messages":[{"content":{"type":"text","text":"***"}}]})");
  CHECK(said("tools/call", "t",
             R"({"content":[{"text":"secret"}],"structuredContent":{"content":"secret"}})") ==
        R"(rewrite all {"content":[{"text":"***"}],"structuredContent":{"content":"secret"}})");
  for (const std::string name : {"content", "contents", "messages"}) {
    CHECK(said("tools/call", "path", "{\"" + name + R"(":[{"text":"secret","x":"secret"}]})") ==
          "rewrite path {\"" + name + R"(":[{"text":"***","x":"secret"}]})");
  }
  CHECK(said("tools/call", "path", R"({"other":[{"text":"secret"}]})") == "allow path");
}

TEST_CASE("large results are evaluated, and conditions that exceed the step budget are stopped") {
  World w(rules(R"j({
    "find": {"on": "mcp.response", "if": "mcp.response.text.matches('needle$')", "decision": "block"}
  })j"));
  const std::string hay(std::size_t{4} << 20, 'x');
  CHECK(w.observe("s", "t", "{\"content\":[{\"text\":\"" + hay + "needle\"}]}") == "block find");
  CHECK(w.observe("s", "t", "{\"content\":[{\"text\":\"" + hay + "\"}]}") == "allow");
  World loops(rules(R"j({"r": {"on": "mcp.request", "decision": "allow", "if":
    "mcp.request.arguments.l.all(a, mcp.request.arguments.l.all(b, mcp.request.arguments.l.all(c, a + b + c > 0)))"}})j"));
  std::string list = "1";
  for (int i = 0; i < 100; ++i) list += ",1";
  CHECK(loops.decide("s", "t", "{\"l\":[" + list + "]}") == "block security.mcp.evaluation_error");
}

TEST_CASE("if legacy is set, warn allows a call with a warning") {
  World w(rules(R"({"w": {"on": "mcp.request", "if": "true", "decision": "warn"}})",
                R"(,"legacy":true)"));
  CHECK(w.decide("s", "t") == "allow w warned");
}

TEST_CASE("a list of allowed tools rejects all other tools") {
  World w(security(R"j({"servers": {"gh": {"allowed_tools": ["read", "list"]}}, "default": "block",
    "rules": {"mcp": {"deny": {"on": "mcp.request", "decision": "block",
                               "if": "mcp.request.tool_name == 'list'"}}}})j"));
  CHECK(w.decide("gh", "read") == "allow security.servers.gh.allowed_tools.listed");
  CHECK(w.decide("gh", "list") == "block deny");
  CHECK(w.decide("gh", "write") == "block security.servers.gh.allowed_tools");
  CHECK(w.decide("other", "read") == "block");
  CHECK(w.shows("gh", "read"));
  CHECK_FALSE(w.shows("gh", "write"));
  CHECK_FALSE(w.shows("gh", "list"));
  CHECK_FALSE(w.shows("other", "read"));
}

TEST_CASE("lists hide only items that no call may use") {
  World w(rules(R"j({
    "args": {"on": "mcp.request", "priority": 10, "decision": "block",
             "if": "mcp.request.tool_name == 'risky' && mcp.request.arguments.path == '/'"},
    "perhaps": {"on": "mcp.request", "priority": 20, "decision": "allow",
             "if": "mcp.request.tool_name == 'mostly' && has(mcp.request.arguments.ticket)"},
    "late": {"on": "mcp.request", "priority": 30, "decision": "block",
             "if": "mcp.request.tool_name == 'mostly'"},
    "who": {"on": "mcp.request", "priority": 40, "decision": "block",
             "if": "mcp.request.tool_name == 'admin' && client.principal != 'root'"},
    "where": {"on": "mcp.request", "priority": 50, "decision": "block",
             "if": "mcp.request.tool_name == 'local' && client.transport == 'http'"},
    "note": {"on": "mcp.request", "priority": 60, "decision": "block",
             "if": "mcp.tool.annotations.destructiveHint == true && mcp.request.server_name == 'd'"},
    "many": {"on": "mcp.request", "priority": 70, "decision": "block",
             "if": "mcp.request.tool_name == 'counted'", "over": {"calls": 1}},
    "gone": {"on": "mcp.request", "priority": 80, "decision": "block",
             "if": "mcp.request.tool_name == 'gone'"}
  })j"));
  CHECK(w.shows("s", "risky"));
  CHECK(w.shows("s", "mostly"));
  CHECK_FALSE(w.shows("s", "admin"));
  CHECK(w.shows("s", "local"));  // a later call by this principal may use another transport
  CHECK(w.shows("s", "counted"));
  CHECK_FALSE(w.shows("s", "gone"));
  Call destructive = call("d", "x", "");
  destructive.definition = R"({"name":"x","annotations":{"destructiveHint":true}})";
  CHECK_FALSE(w.judge.shows(w.set, destructive));
  destructive.definition = R"({"name":"x","annotations":{"destructiveHint":false}})";
  CHECK(w.judge.shows(w.set, destructive));
  // Listing does not affect later decisions.
  CHECK(w.decide("s", "risky", R"({"path":"/"})") == "block args");
  World by_uri(rules(R"j({"r": {"on": "mcp.request", "decision": "block",
      "if": "mcp.request.method == 'resources/read' && !mcp.request.uri.startsWith('file:///ok/')"}})j"));
  Call read = call("f", "file:///etc");
  read.method = "resources/read";
  CHECK_FALSE(by_uri.judge.shows(by_uri.set, read));
  read.name = "file:///{path}";
  CHECK(by_uri.judge.shows(by_uri.set, read));
}

TEST_CASE("the index never skips a rule that could match") {
  std::string many;
  for (int i = 0; i < 200; ++i) {
    const std::string n = std::to_string(i);
    many += (i ? ",\"r" : "\"r") + n + R"(": {"on": "mcp.request", "decision": "block", "if": ")" +
            (i % 4 == 0 ? "mcp.request.server_name == 's" + n + "' && mcp.request.tool_name == 't'"
             : i % 4 == 1 ? "mcp.request.tool_name in ['u" + n + "', 'v']"
             : i % 4 == 2 ? "mcp.request.server_name == 's" + n +
                                "' || mcp.request.tool_name == 'w" + n + "'"
                          : "mcp.request.server_name == 'z' && mcp.request.server_name == 's'") +
            "\", \"priority\": " + std::to_string(i + 1) + "}";
  }
  World w(rules("{" + many + "}"));
  CHECK(w.decide("s8", "t") == "block r8");
  CHECK(w.decide("s8", "other") == "allow");
  CHECK(w.decide("s", "u9") == "block r9");
  CHECK(w.decide("s", "v") == "block r1");
  CHECK(w.decide("s10", "q") == "block r10");
  CHECK(w.decide("q", "w10") == "block r10");
  CHECK(w.decide("s4", "v") == "block r1");
  CHECK(w.decide("z", "q") == "allow");
}

TEST_CASE("a rule with a name prefix is not evaluated for other names") {
  World w(rules(R"j({
    "del": {"on": "mcp.request", "decision": "block",
      "if": "mcp.request.arguments.n > 1 && mcp.request.tool_name.startsWith('delete_')"},
    "any": {"on": "mcp.request", "decision": "block", "priority": 500,
      "if": "mcp.request.server_name.startsWith('prod-') || mcp.request.tool_name == 'x'"}})j"));
  CHECK(w.decide("s", "delete_all", R"({"n":2})") == "block del");
  CHECK(w.decide("s", "delete_all", R"({"n":1})") == "allow");
  CHECK(w.decide("s", "delete_all", R"({"n":"?"})") == "block security.mcp.evaluation_error");
  CHECK(w.decide("s", "list", R"({"n":"?"})") == "allow");
  CHECK(w.decide("s", "delet", "no JSON") == "allow");
  CHECK(w.decide("prod-1", "y") == "block any");
  CHECK(w.decide("s", "x") == "block any");
  CHECK_FALSE(w.shows("prod-1", "y"));
  CHECK(w.shows("s", "delete_all"));
}

TEST_CASE("numbers are compared exactly, regardless of leading and trailing zeros") {
  World w(rules(R"j({"zero": {"on": "mcp.request", "decision": "block",
                              "if": "mcp.request.arguments.x == 0.0"}})j"));
  const auto said = [&](const std::string &x) {
    return w.decide(call("s", "t", "{\"x\":" + x + "}"));
  };
  const std::string zeros(30, '0');
  for (const std::string &zero : {"0." + zeros, "-0." + zeros, "0." + zeros + "e-5"}) {
    CHECK(said(zero) == "block zero");
  }
  CHECK(said("0." + zeros + "1") == "allow");
  CHECK(said("1." + zeros) == "allow");
  // Numbers that do not fit into 64 bits are rounded. Numbers outside the range of double are an
  // error.
  World sizes(rules(R"j({"large": {"on": "mcp.request", "decision": "block",
                                   "if": "mcp.request.arguments.x > 1.0e-9"}})j"));
  const auto size_of = [&](const std::string &x) {
    return sizes.decide(call("s", "t", "{\"x\":" + x + "}"));
  };
  for (const std::string &x :
       {std::string("0.00000000184467440737095516158451"), std::string("18446744073709551615.5"),
        "0." + std::string(400, '0') + "7e400"}) {
    CHECK(size_of(x) == "block large");
  }
  for (const std::string &x :
       {"1" + zeros + ".5e-400", "0." + std::string(400, '0') + "12345678901234567890123e-90000000",
        "-18446744073709551615.5" + zeros}) {
    CHECK(size_of(x) == "allow");
  }
  CHECK(size_of(std::string(400, '7')) == "block security.mcp.evaluation_error");
}
