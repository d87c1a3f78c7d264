#include "explain.hpp"

#include "json_text.hpp"
#include "rules_test.hpp"

using namespace bulkhead::rules;
using namespace bulkhead::rules::test;

TEST_CASE("explaining a call shows the verdict and the evaluated rules") {
  World w(rules(R"j({
    "one": {"on": "mcp.request", "priority": 1, "if": "mcp.request.arguments.n > 5", "decision": "block"},
    "two": {"on": "mcp.request", "priority": 2, "if": "mcp.request.tool_name == 't'",
            "decision": "ask", "reason": "look"},
    "other": {"on": "mcp.request", "priority": 3, "if": "mcp.request.tool_name == 'u'", "decision": "block"},
    "mask": {"on": "mcp.response", "if": "true", "decision": "rewrite",
             "rewrite_target": "response.text =~ \"a\"", "rewrite_value": "b"}})j"));
  const auto said = explain(
      w.set, w.judge,
      R"({"server":"s","name":"t","arguments":{"n":1},"result":{"content":[{"text":"a"}]}})");
  REQUIRE(said.has_value());
  CHECK(*said == R"({"request":{"decision":"ask","rule":"security.rules.mcp.two","reason":"look",)"
                 R"("warned":false,"rules":[{"rule":"security.rules.mcp.one","place":"file.toml",)"
                 R"("decision":"block","found":"does not match"},{"rule":"security.rules.mcp.two",)"
                 R"("place":"file.toml","decision":"ask","found":"matches"}]},)"
                 R"("response":{"decision":"rewrite","rule":"security.rules.mcp.mask","reason":"",)"
                 R"("warned":false,"rewritten":{"content":[{"text":"b"}]},"rules":[)"
                 R"({"rule":"security.rules.mcp.mask","place":"file.toml","decision":"rewrite",)"
                 R"("found":"matches"}]}})");
  const auto broken = explain(w.set, w.judge, R"({"server":"s","name":"t"})");
  REQUIRE(broken.has_value());
  has(*broken, R"("found":"cannot be evaluated: 1:)");
  has(*broken, R"("rule":"security.mcp.evaluation_error")");
}

namespace {

// Explains a call, and returns the members "decision" and "rule" of the part of the answer.
std::string decision(World &w, const std::string &call, std::string_view part = "request") {
  const auto said = explain(w.set, w.judge, call);
  if (!said) return said.error();
  JsonText json;
  REQUIRE(json.parse(*said) == nullptr);
  const rapidjson::Value *found = member(json.value(), part);
  REQUIRE(found != nullptr);
  return std::string(text_of(*member(*found, "decision"))) + " " +
         std::string(text_of(*member(*found, "rule")));
}

}  // namespace

TEST_CASE("explaining reads arguments only in the requests that have them") {
  World w(rules(R"j({
    "args": {"on": "mcp.request", "priority": 1, "decision": "block",
             "if": "has(mcp.request.arguments.path)"},
    "extra": {"on": "mcp.request", "priority": 2, "decision": "ask",
              "if": "has(mcp.request.extra.arguments) && mcp.request.extra.arguments.path == '/etc'"},
    "both": {"on": "mcp.request", "priority": 3, "decision": "block",
             "if": "has(mcp.request.extra.x) && mcp.request.extra.x == 1"}})j"));
  const auto said = [&](const std::string &method, const std::string &more = "") {
    return decision(w, R"({"server":"s","name":"n","arguments":{"path":"/etc"},"method":")" +
                           method + "\"" + more + "}");
  };
  for (const char *method : {"tools/call", "prompts/get"})
    CHECK(said(method) == "block security.rules.mcp.args");
  for (const char *method :
       {"resources/read", "resources/subscribe", "completion/complete", "tasks/update"}) {
    INFO(method);
    CHECK(said(method) == "ask security.rules.mcp.extra");
    CHECK(said(method, R"(,"extra":{})") == "ask security.rules.mcp.extra");
    CHECK(said(method, R"(,"extra":{"x":2})") == "ask security.rules.mcp.extra");
    CHECK(said(method, R"(,"extra":{"arguments":{"path":"/"},"x":1})") ==
          "block security.rules.mcp.both");
  }
}

TEST_CASE("explaining reports requests that policies do not evaluate") {
  World w(rules(R"j({
    "all": {"on": "mcp.request", "decision": "block", "if": "true"},
    "job": {"on": "mcp.response", "decision": "block",
            "if": "mcp.request.method == 'tools/call' && mcp.request.tool_name == 'job'"}})j"));
  for (const std::string method :
       {"resources/unsubscribe", "tasks/get", "tasks/result", "tasks/cancel"}) {
    INFO(method);
    const std::string call =
        R"({"server":"s","name":"job","method":")" + method + R"(","result":{}})";
    CHECK(decision(w, call) == "allow ");
    has(*explain(w.set, w.judge, call),
        R"("reason":"policies do not evaluate requests with this method","warned":false,"rules":[]})");
    const bool task = method.starts_with("tasks/");
    CHECK(decision(w, call, "response") == (task ? "block security.rules.mcp.job" : "allow "));
  }
  for (const std::string method : {"resources/subscribe", "tasks/update", "tools/call"}) {
    INFO(method);
    CHECK(decision(w, R"({"server":"s","name":"job","method":")" + method + "\"}") ==
          "block security.rules.mcp.all");
  }
}

TEST_CASE("explaining applies large_messages = refuse") {
  const auto with = [](const std::string &more) {
    return rules(R"j({
      "read": {"on": "mcp.request", "decision": "allow",
               "if": "mcp.request.tool_name == 't' && !has(mcp.request.arguments.x)"},
      "result": {"on": "mcp.response", "decision": "block",
                 "if": "mcp.response.text.contains('token')"},
      "note": {"on": "mcp.notification", "decision": "block",
               "if": "mcp.notification.text.contains('token')"}})j",
                 more);
  };
  const std::string text = "{\"a\":\"" + std::string(200'000, 'x') + "\"}";
  const std::string large = R"({"server":"s","name":"t","arguments":)" + text + "}";
  const std::string answer = R"({"server":"s","name":"t","result":)" + text + "}";
  const std::string note = R"({"server":"s","on":"mcp.notification","arguments":)" + text + "}";
  World refuses(with(R"(,"large_messages":"refuse")"));
  CHECK(decision(refuses, large) == "block security.large_messages");
  CHECK(decision(refuses, answer) == "allow security.rules.mcp.read");
  CHECK(decision(refuses, answer, "response") == "block security.large_messages");
  CHECK(decision(refuses, note) == "block security.large_messages");
  CHECK(decision(refuses, R"({"server":"s","name":"other","arguments":)" + text + "}") ==
        "allow security.rules.mcp.default");  // no rule reads the arguments of this tool
  World judges(with(""));
  CHECK(decision(judges, large) == "allow security.rules.mcp.read");
  CHECK(decision(judges, answer, "response") == "allow ");
  CHECK(decision(judges, note) == "allow ");
}

TEST_CASE("an invalid description of a call is reported") {
  World w("{}");
  const auto wrong = [&](std::string_view call) {
    const auto said = explain(w.set, w.judge, call);
    return said ? "accepted" : said.error();
  };
  CHECK(wrong("{") == "the description of the call is invalid: not valid JSON");
  CHECK(wrong("[]") == "a call must be a JSON object");
  CHECK(wrong(R"({"server":"s"})") == "a call requires \"server\" and \"name\"");
  CHECK(wrong(R"({"sever":"s","name":"t"})") ==
        "unknown member \"sever\"; did you mean \"server\"?");
  CHECK(wrong(R"({"server":1,"name":"t"})") == "\"server\" must be a string");
  CHECK(wrong(R"({"server":"s","name":"t","arguments":[]})") ==
        "\"arguments\" must be a JSON object");
  CHECK(wrong(R"({"server":"s","name":"t","session":-1})") == "\"session\" must be a whole number");
}
