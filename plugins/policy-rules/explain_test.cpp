#include "explain.hpp"

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

TEST_CASE("an invalid description of a call is reported") {
  World w("{}");
  const auto wrong = [&](std::string_view call) {
    const auto said = explain(w.set, w.judge, call);
    return said ? "accepted" : said.error();
  };
  CHECK(wrong("{") == "it is not valid JSON");
  CHECK(wrong("[]") == "a call must be a JSON object");
  CHECK(wrong(R"({"server":"s"})") == "\"server\" and \"name\" are missing");
  CHECK(wrong(R"({"sever":"s","name":"t"})") ==
        "unknown member \"sever\"; did you mean \"server\"?");
  CHECK(wrong(R"({"server":1,"name":"t"})") == "\"server\" must be a string");
  CHECK(wrong(R"({"server":"s","name":"t","arguments":[]})") ==
        "\"arguments\" must be a JSON object");
  CHECK(wrong(R"({"server":"s","name":"t","session":-1})") == "\"session\" must be a whole number");
}
