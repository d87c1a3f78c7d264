// Tests rules for server-initiated requests, client responses and notifications.
#include "explain.hpp"
#include "rules_test.hpp"

using namespace bulkhead::rules;
using namespace bulkhead::rules::test;

namespace {

Call event(Event what, std::string_view method, std::string_view body,
           std::string_view tool = "t") {
  Call out = call("s", tool, body);
  out.event = what;
  out.method = method;
  return out;
}

std::string judged(World &w, const Call &call) {
  return World::shown(w.judge.judge(w.set, call));
}

}  // namespace

TEST_CASE("server-initiated requests, client responses and notifications have their own rules") {
  World w(rules(R"j({
    "no-passwords": {"on": "mcp.input_request", "decision": "block",
      "if": "mcp.request.method == 'elicitation/create' && mcp.input.text.matches('(?i)password')"},
    "sampling": {"on": "mcp.input_request", "decision": "block", "priority": 200,
      "if": "mcp.request.method == 'sampling/createMessage' && mcp.input.params.maxTokens > 1000"},
    "keep-mail": {"on": "mcp.input_response", "decision": "block",
      "if": "mcp.input.action == 'accept' && mcp.input.result.content.mail.endsWith('@corp.example')"},
    "logs": {"on": "mcp.notification", "decision": "block",
      "if": "mcp.request.method == 'notifications/message' && mcp.notification.params.data.contains('key')"},
    "roots": {"on": "mcp.notification", "decision": "block", "if": "mcp.notification.recipient == 'server'"},
    "by-tool": {"on": "mcp.input_request", "decision": "block", "priority": 1,
      "if": "mcp.request.server_name == 's' && mcp.request.tool_name == 'quiet'"},
    "calls": {"on": "mcp.request", "if": "true", "decision": "block"}})j"));
  const auto ask = [&](std::string_view body, std::string_view tool = "t") {
    return judged(w, event(Event::input_request, "elicitation/create", body, tool));
  };
  CHECK(ask(R"({"message":"Your name?"})") == "allow");
  CHECK(ask(R"({"message":"?","requestedSchema":{"a":["your PassWord"]}})") ==
        "block no-passwords");
  CHECK(ask(R"({"message":"Your name?"})", "quiet") == "block by-tool");
  CHECK(ask("") == "allow");
  CHECK(ask("[]") == "block security.mcp.evaluation_error");
  CHECK(ask("{") == "block security.mcp.evaluation_error");
  const auto sample = [&](std::string_view body) {
    return judged(w, event(Event::input_request, "sampling/createMessage", body));
  };
  CHECK(sample(R"({"maxTokens":10})") == "allow");
  CHECK(sample(R"({"maxTokens":1001})") == "block sampling");
  CHECK(sample("{}") == "block security.mcp.evaluation_error");
  const auto answer = [&](std::string_view body) {
    return judged(w, event(Event::input_response, "elicitation/create", body));
  };
  CHECK(answer(R"({"action":"accept","content":{"mail":"a@corp.example"}})") == "block keep-mail");
  CHECK(answer(R"({"action":"accept","content":{"mail":"a@home.example"}})") == "allow");
  CHECK(answer(R"({"action":"decline"})") == "allow");
  CHECK(answer(R"({"roots":[]})") == "allow");
  const auto note = [&](std::string_view method, std::string_view body, bool to_server = false) {
    Call call = event(Event::notification, method, body, "");
    call.to_server = to_server;
    return judged(w, call);
  };
  CHECK(note("notifications/message", R"({"data":"a key"})") == "block logs");
  CHECK(note("notifications/message", R"({"data":"nothing"})") == "allow");
  CHECK(note("notifications/progress", R"({"progress":1})") == "allow");
  CHECK(note("notifications/roots/list_changed", "", true) == "block roots");
  CHECK((w.set.needs & BH_POLICY_JUDGES_INPUT) != 0);
  CHECK((w.set.needs & BH_POLICY_JUDGES_NOTIFICATIONS) != 0);
  const World calls_only(rules(R"({"c":{"on":"mcp.request","if":"true","decision":"block"}})"));
  CHECK((calls_only.set.needs & BH_POLICY_JUDGES_INPUT) == 0);
  CHECK((calls_only.set.needs & BH_POLICY_JUDGES_NOTIFICATIONS) == 0);
}

TEST_CASE("the default, allow lists and budgets apply only to calls") {
  World w(security(R"j({"default":"block","servers":{"s":{"allowed_tools":["x"]}},"rules":{"mcp":{
    "once":{"on":"mcp.request","if":"true","decision":"block","over":{"calls":1}},
    "x":{"on":"mcp.request","if":"true","decision":"allow","priority":500}}}})j"));
  CHECK(w.decide("s", "x") == "allow x");
  for (int i = 0; i < 3; ++i) {
    CHECK(judged(w, event(Event::input_request, "roots/list", "")) == "allow");
    CHECK(judged(w, event(Event::input_response, "roots/list", "{}")) == "allow");
    CHECK(judged(w, event(Event::notification, "notifications/progress", "{}")) == "allow");
  }
  CHECK(w.decide("s", "x") == "block once");
}

TEST_CASE("invalid rules for these events are rejected") {
  const auto one = [](std::string_view on, std::string_view more) {
    return rules("{\"r\":{\"on\":\"" + std::string(on) + "\"," + std::string(more) + "}}");
  };
  for (const std::string_view on :
       {"mcp.input_request", "mcp.input_response", "mcp.notification"}) {
    has(bad(one(on, R"("if":"true","decision":"ask")")), "can only be allowed or blocked");
    has(bad(one(on, R"("if":"true","decision":"rewrite")")), "can only be allowed or blocked");
    has(bad(one(on, R"("if":"true","decision":"block","over":{"calls":1})")),
        "budgets apply only to requests");
    has(bad(one(on, R"("if":"mcp.request.arguments.x == 1","decision":"block")")),
        "is not available when on = \"" + std::string(on) + "\"; use on = \"mcp.request\"");
    good(one(
        on,
        R"j("if":"session.calls > 3 && time > timestamp('2020-01-01T00:00:00Z')","decision":"block")j"));
  }
  has(bad(one("mcp.request", R"("if":"mcp.input.action == 'x'","decision":"block")")),
      "use on = \"mcp.input_response\"");
}

TEST_CASE("these events are explained like calls") {
  World w(rules(R"j({"r":{"on":"mcp.input_request","decision":"block",
    "if":"mcp.input.params.message == 'x'"}})j"));
  const auto said =
      explain(w.set, w.judge,
              R"({"on":"mcp.input_request","server":"s","method":"elicitation/create",)"
              R"("arguments":{"message":"x"}})");
  REQUIRE(said.has_value());
  has(*said, R"("decision":"block","rule":"security.rules.mcp.r")");
  const auto wrong = explain(w.set, w.judge, R"({"on":"mcp.response","server":"s","name":"t"})");
  REQUIRE_FALSE(wrong.has_value());
  has(wrong.error(), "\"on\" must be mcp.request");
}
