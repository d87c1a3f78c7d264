#include "service/approval_json.hpp"

#include <catch2/catch.hpp>

#include "mcp/scan.hpp"

using namespace bulkhead;
using namespace bulkhead::program;

TEST_CASE("approval answers are validated strictly") {
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
  CHECK(good(R"({"decision":"allow","surface":"terminal"})").surface == ApprovalSurface::terminal);
  for (const char *bad :
       {"", "{}", "[]", "null", "{", R"({"decision":"yes"})", R"({"decision":true})",
        R"({"decision":"allow","decision":"deny"})", R"({"decision":"allow","scope":"forever"})",
        R"({"decision":"allow","scope":{"minutes":0}})", R"({"decision":"allow","scope":{}})",
        R"({"decision":"allow","scope":{"minutes":1441}})", R"({"decision":"allow","scope":null})",
        R"({"decision":"allow","scope":{"minutes":1.5}})", R"({"decision":"allow","more":1})",
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

TEST_CASE("questions with any content are written as valid JSON") {
  ApprovalList list;
  CHECK(approvals_json(list, 0) == R"({"waiting":0,"pending":[]})");
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
}
