#include "route/task_bridge.hpp"

#include <catch2/catch.hpp>

namespace bulkhead {

TEST_CASE("A description of 2026-07-28 becomes one of 2025-11-25") {
  CHECK(session_task(R"({"resultType":"task","taskId":"1","status":"working","createdAt":"a",)"
                     R"("lastUpdatedAt":"b","ttlMs":60000,"pollIntervalMs":20,"_meta":{"k":1}})") ==
        R"({"taskId":"1","status":"working","createdAt":"a","lastUpdatedAt":"b","ttl":60000,)"
        R"("pollInterval":20})");
  CHECK(
      session_task(R"({"taskId":"1","status":"completed","ttlMs":null,"result":{"content":[]}})") ==
      R"({"taskId":"1","status":"completed","ttl":null})");
  // In 2025-11-25, a task whose tool returns isError has failed.
  CHECK(session_task(R"({"status":"completed","ttlMs":1,"result":{"isError":true}})") ==
        R"({"status":"failed","ttl":1})");
  CHECK(
      session_task(R"({"status":"failed","error":{"code":1,"message":"m"},"statusMessage":"s"})") ==
      R"({"status":"failed","statusMessage":"s","ttl":null})");
  CHECK(session_task(R"({"status":"input_required","inputRequests":{"k":{}},"ttlMs":1})") ==
        R"({"status":"input_required","ttl":1})");
}

TEST_CASE("A description of 2025-11-25 becomes one of 2026-07-28") {
  const std::string_view task =
      R"({"taskId":"1","status":"failed","createdAt":"a","ttl":null,"pollInterval":20,"_meta":{}})";
  CHECK(stateless_task(task) ==
        R"({"taskId":"1","status":"failed","createdAt":"a","ttlMs":null,"pollIntervalMs":20})");
  CHECK(stateless_task(task, R"("result":{"isError":true})") ==
        R"({"taskId":"1","status":"completed","createdAt":"a","ttlMs":null,"pollIntervalMs":20,)"
        R"("result":{"isError":true}})");
  CHECK(stateless_task(R"({"status":"completed"})", R"("error":{"code":1,"message":"m"})") ==
        R"({"status":"failed","ttlMs":null,"error":{"code":1,"message":"m"}})");
  CHECK(stateless_task(R"({"status":"input_required","ttl":1})") ==
        R"({"status":"input_required","ttlMs":1,"inputRequests":{}})");
}

TEST_CASE("Only members of a task of 2025-11-25 are converted, each of them once") {
  CHECK(stateless_task(R"({"taskId":"1","resultType":"input_required","result\u0054ype":"task",)"
                       R"("status":"working","inputRequests":{"k":{}},"requestState":"s","x":1,)"
                       R"("result":{"content":[]},"error":{},"ttlMs":3,"task\u0049d":"2",)"
                       R"("statusMessage":"a","lastUpdatedAt":"b","ttl":4})") ==
        R"({"taskId":"1","status":"working","statusMessage":"a","lastUpdatedAt":"b","ttlMs":4})");
}

TEST_CASE("The result of a call is related to its task only in 2025-11-25") {
  const std::string related =
      R"({"content":[],"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"1"}}})";
  CHECK(with_related_task(R"({"content":[]})", R"("1")") == related);
  CHECK(with_related_task(related, R"("1")") == related);
  CHECK(without_related_task(related) == R"({"content":[]})");
  const std::string other = R"({"_meta":{"k":1},"content":[]})";
  CHECK(without_related_task(other) == other);
  CHECK(with_related_task(other, R"("1")") ==
        R"({"content":[],"_meta":{"k":1,"io.modelcontextprotocol/related-task":{"taskId":"1"}}})");
}

TEST_CASE("Only tasks/result has another name at the server") {
  CHECK(bridged_task_method(mcp::Method::tasks_result) == mcp::Method::tasks_get);
  CHECK(bridged_task_method(mcp::Method::tasks_cancel) == mcp::Method::tasks_cancel);
  CHECK(bridged_task_method(mcp::Method::tools_call) == mcp::Method::tools_call);
}

}  // namespace bulkhead
