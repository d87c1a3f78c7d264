#include "service/approval_json.hpp"

#include <catch2/catch.hpp>

#include "mcp/scan.hpp"

using namespace bulkhead;
using namespace bulkhead::program;

TEST_CASE("decisions about approval requests are validated strictly") {
  const auto good = [](std::string_view body) {
    const auto answer = read_approval_answer(body, "id");
    REQUIRE(answer.has_value());
    CHECK(answer->id == "id");
    CHECK(answer->scope.valid());
    return *answer;
  };
  CHECK(good(R"({"decision":"allow"})").allow);
  CHECK(good(R"({"decision":"allow"})").scope.kind == ApprovalScope::Kind::once);
  CHECK(good(R"({"decision":"allow"})").surface == ApprovalSurface::api);
  CHECK_FALSE(good(" {\"decision\":\"deny\"}\n").allow);
  CHECK(good(R"({"decision":"allow","scope":"session"})").scope.kind ==
        ApprovalScope::Kind::session);
  CHECK(good(R"({"decision":"allow","scope":{"minutes":10}})").scope.minutes == 10);
  CHECK_FALSE(good(R"({"decision":"allow","scope":{"minutes":10}})").scope.tool);
  const ApprovalScope session = good(R"({"decision":"allow","scope":{"tool":true}})").scope;
  CHECK(session.tool);
  CHECK(session.kind == ApprovalScope::Kind::session);
  const ApprovalScope tool =
      good(R"({"decision":"allow","scope":{"tool":true,"minutes":60}})").scope;
  CHECK(tool.tool);
  CHECK(tool.kind == ApprovalScope::Kind::minutes);
  CHECK(tool.minutes == 60);
  CHECK(good(R"({"decision":"revoke"})").revoke);
  CHECK_FALSE(good(R"({"decision":"revoke"})").allow);
  CHECK_FALSE(good(R"({"decision":"allow"})").revoke);
  CHECK(good(R"({"decision":"allow","surface":"terminal"})").surface == ApprovalSurface::terminal);
  for (const char *bad : {"",
                          "{}",
                          "[]",
                          "null",
                          "{",
                          R"({"decision":"yes"})",
                          R"({"decision":true})",
                          R"({"decision":"allow","decision":"deny"})",
                          R"({"decision":"allow","scope":"forever"})",
                          R"({"decision":"allow","scope":{"minutes":0}})",
                          R"({"decision":"allow","scope":{}})",
                          R"({"decision":"allow","scope":{"minutes":1441}})",
                          R"({"decision":"allow","scope":null})",
                          R"({"decision":"allow","scope":{"tool":true,"minutes":61}})",
                          R"({"decision":"allow","scope":{"tool":true,"minutes":0}})",
                          R"({"decision":"allow","scope":{"tool":false}})",
                          R"({"decision":"allow","scope":"tool"})",
                          R"({"decision":"allow","scope":{"tool":1}})",
                          R"({"decision":"allow","scope":{"minutes":4294967297}})",
                          R"({"decision":"allow","scope":{"minutes":1.5}})",
                          R"({"decision":"allow","more":1})",
                          R"({"decision":"allow","surface":"elicitation"})"}) {
    INFO(bad);
    const auto answer = read_approval_answer(bad, "id");
    REQUIRE_FALSE(answer.has_value());
    CHECK(answer.error().code == BH_E_INVALID);
  }
}

TEST_CASE("a watch request has a duration") {
  CHECK(read_approval_watch("")->watch_ms == 5000);
  CHECK(read_approval_watch("{}")->watch_ms == 5000);
  CHECK(read_approval_watch(R"({"seconds":60})")->watch_ms == 60'000);
  for (const char *bad : {R"({"seconds":0})", R"({"seconds":61})", R"({"seconds":"5"})", "5"}) {
    CHECK_FALSE(read_approval_watch(bad).has_value());
  }
}

TEST_CASE("approval requests with any content are written as valid JSON") {
  ApprovalList list;
  CHECK(approvals_json(list, 0) == R"({"waiting":0,"pending":[],"granted":[]})");
  ApprovalQuestion &q = list.questions.emplace_back();
  q.id = "ab";
  q.arguments = "{\"a\":\"\\n\xFF";
  q.arguments_cut = true;
  q.meta = R"({"force":1})";
  q.extra = R"({"task":1})";
  q.session = 0xFFFFFFFFFFFFFFFF;
  q.expires_unix_ms = 100;
  list.waiting = 7;
  const std::string json = approvals_json(list, 40);
  CHECK(mcp::valid_json(json));
  CHECK(json.find(R"("meta":"{\"force\":1}")") != std::string::npos);
  CHECK(json.find(R"("extra":"{\"task\":1}")") != std::string::npos);
  CHECK(json.find(R"("expires_in_ms":60)") != std::string::npos);
  CHECK(json.find(R"("session":"18446744073709551615")") != std::string::npos);
  CHECK(approvals_json(list, 140).find(R"("expires_in_ms":0)") != std::string::npos);
  ApprovalGrant grant{list.questions[0], {ApprovalScope::Kind::minutes, 1, true}, 1};
  list.questions.clear();
  list.grants = {grant, {{}, {ApprovalScope::Kind::session, 0}, 0}};
  const std::string granted = approvals_json(list, 40);
  REQUIRE(mcp::valid_json(granted));
  CHECK(granted.find(R"("scope":"tool for 1 minute")") != std::string::npos);
  CHECK(granted.find(R"("expires_in_ms":60)") != std::string::npos);
  CHECK(granted.find(R"("scope":"session")") > granted.find(R"("expires_in_ms":60)"));
  CHECK(granted.rfind("expires_in_ms") == granted.find("expires_in_ms"));  // occurs once
}
