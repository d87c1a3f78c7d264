#include "route/task_answers.hpp"

#include <catch2/catch.hpp>
#include <memory>

#include "route/call.hpp"
#include "route/session.hpp"

namespace bulkhead {
namespace {

struct AnswerWorld {
  std::unique_ptr<Reactor> reactor = *Reactor::create();
  Limits limits;
  TaskIds ids{std::string(TextSealer::key_bytes, 'k')};
  TaskAnswers answers{{ids, *reactor, limits}};
  Session session;
  Call call;

  AnswerWorld() {
    session.principal = "ada";
    call.session = &session;
    call.server = "builds";
    call.name = "compile";
    call.method = mcp::Method::tools_call;
    call.task = TaskRole::may_create;
  }
  std::string edited(std::string_view result) {
    const auto edits = answers.edits(call, result);
    return edits ? edits->applied(result) : "error: " + edits.error();
  }
};

}  // namespace

TEST_CASE("The client gets an id that opens to the server's task") {
  AnswerWorld w;
  w.limits.task_lifetime_ms = 5'000;
  const std::string result =
      w.edited(R"({"resultType":"task", "taskId" : "t\u0031", "ttlMs":null})");
  const std::string_view token = mcp::member(result, "taskId");
  CHECK(result ==
        R"({"resultType":"task", "taskId" : )" + std::string(token) + R"(, "ttlMs":null})");
  const std::uint64_t now = w.reactor->now_ns();
  const auto task = w.ids.open(token, w.session, now);
  REQUIRE(task);
  CHECK(task->server == "builds");
  CHECK(task->tool == "compile");
  CHECK(task->id == R"("t\u0031")");
  CHECK_FALSE(w.ids.open(token, w.session, now + 5'001'000'000u));
}

TEST_CASE("Later results contain the id as the client has sent it") {
  AnswerWorld w;
  w.call.task = TaskRole::about;
  w.call.method = mcp::Method::tasks_get;
  w.call.request.task_id = R"("abc")";
  CHECK(w.edited(R"({"taskId":"1","status":"working"})") ==
        R"({"taskId":"abc","status":"working"})");
  w.call.method = mcp::Method::tasks_result;
  CHECK(w.edited(
            R"({"content":[],"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"1"}}})") ==
        R"({"content":[],"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"abc"}}})");
}

TEST_CASE("A task without a valid id is not forwarded; other results stay unchanged") {
  AnswerWorld w;
  CHECK(w.edited(R"({"resultType":"task"})") == "error: sent a task without an id");
  CHECK(w.edited(R"({"resultType":"task","taskId":7})") ==
        "error: sent a task with an id that is not a string");
  const std::string id(TaskIds::max_id, 'i');
  CHECK(w.edited(R"({"resultType":"task","taskId":")" + id + R"("})") ==
        "error: sent a task with an id that is too long");
  const std::string_view plain = R"({"content":[],"taskId":"1"})";
  CHECK(w.edited(plain) == plain);
  w.call.task = TaskRole::none;
  CHECK(w.edited(R"({"resultType":"task","taskId":"1"})") ==
        R"({"resultType":"task","taskId":"1"})");
}

TEST_CASE("A task that policies cannot evaluate completely is not forwarded") {
  AnswerWorld w;
  w.call.task = TaskRole::about;
  w.call.method = mcp::Method::tasks_get;
  for (const std::string_view id : {R"({"secret":1})", R"(["secret"])", "7", "null"}) {
    CHECK(w.edited(R"({"status":"working","task\u0049d":)" + std::string(id) + "}") ==
          "error: sent a task with an id that is not a string");
  }
  w.call.request.task_id = R"("abc")";
  struct {
    TaskRole role;
    mcp::Method method;
    std::string head;
  } const forms[] = {
      {TaskRole::may_create, mcp::Method::tools_call, R"({"resultType":"task","taskId":"1",)"},
      {TaskRole::creates, mcp::Method::tools_call, R"({"task":{"taskId":"1"},)"},
      {TaskRole::about, mcp::Method::tasks_get, R"({"taskId":"1",)"}};
  for (const auto &form : forms) {
    w.call.task = form.role;
    w.call.method = form.method;
    for (const std::string_view outcomes :
         {R"("result":{"content":[]},"error":{"code":1,"message":"m"}})",
          R"("err\u006fr":{},"result":{}})"}) {
      CHECK(w.edited(form.head + std::string(outcomes)) ==
            "error: sent a task with both a result and an error");
    }
    for (const std::string_view name :
         {"io.modelcontextprotocol/task", "io.modelcontextprotocol\\/task"}) {
      CHECK(w.edited(form.head + R"("result":{"content":[],")" + std::string(name) + R"(":1}})") ==
            "error: sent a task whose result has the reserved member io.modelcontextprotocol/task");
    }
    CHECK_FALSE(w.edited(form.head + R"("result":{"content":[]}})").starts_with("error: "));
    CHECK_FALSE(w.edited(form.head + R"("error":{"code":1}})").starts_with("error: "));
  }
}

}  // namespace bulkhead
