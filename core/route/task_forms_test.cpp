#include "route/task_forms.hpp"

#include <catch2/catch.hpp>

namespace bulkhead {
namespace {

using mcp::Method;

constexpr std::string_view done =
    R"({"resultType":"complete","taskId":"1","status":"completed","statusMessage":"all good",)"
    R"("result":{"content":[{"type":"text","text":"a secret"}],"isError":false},"x":"y"})";
constexpr std::string_view failed =
    R"({"taskId":"1","status":"failed","error":{"code":-32603,"message":"no disk"}})";

std::string ids_in(TaskRole role, Method method, std::string_view result) {
  const TaskIdPlaces places = task_ids_in(role, method, result);
  std::string out;
  for (std::size_t i = 0; i < places.count; ++i) out.append(places.tokens[i]).append(" ");
  return out;
}

}  // namespace

TEST_CASE("Only a client with the extension declares tasks") {
  CHECK(declares_tasks(R"({"extensions":{"io.modelcontextprotocol/tasks":{}}})"));
  CHECK(
      declares_tasks(R"({"roots":{},"extensions":{"a/b":{},"io.modelcontextprotocol/tasks":{}}})"));
  CHECK_FALSE(declares_tasks("{}"));
  CHECK_FALSE(declares_tasks(R"({"tasks":{}})"));
  CHECK_FALSE(declares_tasks(R"({"extensions":{"io.modelcontextprotocol/tasks":true}})"));
  CHECK_FALSE(declares_tasks(R"({"extensions":[]})"));
}

TEST_CASE("The server's ids in results") {
  const std::string_view task = R"({"resultType":"task","taskId":"1"})";
  CHECK(ids_in(TaskRole::may_create, Method::tools_call, task) == R"("1" )");
  CHECK(ids_in(TaskRole::none, Method::tools_call, task).empty());
  CHECK(ids_in(TaskRole::may_create, Method::tools_call, R"({"taskId":"1","content":[]})").empty());
  const std::string_view created = R"({"task":{"status":"working","taskId":"2"}})";
  CHECK(ids_in(TaskRole::creates, Method::tools_call, created) == R"("2" )");
  CHECK(ids_in(TaskRole::creates, Method::tools_call, R"({"content":[]})").empty());
  CHECK(ids_in(TaskRole::about, Method::tasks_get, done) == R"("1" )");
  // In the result of a call, taskId is a member like any other.
  const std::string_view result =
      R"({"taskId":"x","_meta":{"io.modelcontextprotocol/related-task":{"taskId":"3"}}})";
  CHECK(ids_in(TaskRole::about, Method::tasks_result, result) == R"("3" )");
  CHECK(ids_in(TaskRole::about, Method::tasks_get, R"({"taskId":7})").empty());
}

TEST_CASE("Policies evaluate the result of the task, and all of its other members") {
  CHECK(judged_task(done) ==
        R"({"io.modelcontextprotocol/task":{"resultType":"complete","status":"completed",)"
        R"("statusMessage":"all good","x":"y"},)"
        R"("content":[{"type":"text","text":"a secret"}],"isError":false})");
  CHECK(judged_task(R"({"taskId":"1","status":"working"})") ==
        R"({"io.modelcontextprotocol/task":{"status":"working"},"content":[]})");
  CHECK(judged_task(failed) == R"({"io.modelcontextprotocol/task":{"status":"failed"},)"
                               R"("isError":true,"content":[{"type":"text","text":"no disk"}]})");
  // A `result` that is not an object is not an outcome, but the policy must see it.
  CHECK(judged_task(R"({"taskId":"1","result":"a secret"})") ==
        R"({"io.modelcontextprotocol/task":{"result":"a secret"},"content":[]})");
}

TEST_CASE("The changes of a policy are made to the task") {
  std::string judged = judged_task(done);
  CHECK(
      rewritten_task(done, judged) ==
      R"({"resultType":"complete","status":"completed","statusMessage":"all good","x":"y",)"
      R"("taskId":"1","result":{"content":[{"type":"text","text":"a secret"}],"isError":false}})");
  judged.replace(judged.find("secret"), 6, "***");
  judged.replace(judged.find("good"), 4, "***");
  CHECK(rewritten_task(done, judged) ==
        R"({"resultType":"complete","status":"completed","statusMessage":"all ***","x":"y",)"
        R"("taskId":"1","result":{"content":[{"type":"text","text":"a ***"}],"isError":false}})");
  const std::string_view working = R"({"taskId":"1","status":"working"})";
  CHECK(rewritten_task(working, judged_task(working)) == R"({"status":"working","taskId":"1"})");
}

TEST_CASE("A policy can neither rewrite the error of a task nor remove the task") {
  CHECK_FALSE(rewritten_task(failed, judged_task(failed)));
  CHECK_FALSE(rewritten_task(done, R"({"content":[]})"));
  CHECK_FALSE(rewritten_task(done, R"({"io.modelcontextprotocol/task":"***","content":[]})"));
  CHECK_FALSE(rewritten_task(done, "[]"));
}

}  // namespace bulkhead
