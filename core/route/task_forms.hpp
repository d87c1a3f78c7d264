// The messages of tasks: the extension io.modelcontextprotocol/tasks of MCP 2026-07-28, and the
// experimental tasks of 2025-11-25.
//
// Thread-safe. All texts must be validated JSON.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "mcp/scan.hpp"

namespace bulkhead {

inline constexpr std::string_view tasks_extension = "io.modelcontextprotocol/tasks";
// The `data` of the error with which requests about tasks are rejected if the client has not
// declared the extension.
inline constexpr std::string_view tasks_required =
    R"({"requiredCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}})";

// The message of the error for every id that is not valid.
inline constexpr std::string_view task_not_found =
    "Task not found: params.taskId is unknown or has expired";

// How a call concerns tasks. The values for creating tasks depend on the revision: the server's or,
// once TaskRounds has converted the response, the client's.
enum class TaskRole : std::uint8_t {
  none,
  may_create,  // 2026-07-28: the server may respond with a task
  creates,     // 2025-11-25: the request asks the server to create a task
  about        // a request about a task
};

// Returns true for requests about one task.
constexpr bool is_task_method(mcp::Method method) noexcept {
  using enum mcp::Method;
  return method == tasks_get || method == tasks_result || method == tasks_update ||
         method == tasks_cancel;
}

// Returns true if a client's capabilities (a JSON object) include the extension.
bool declares_tasks(std::string_view capabilities) noexcept;

// Returns true if the result of a call with this role describes a task.
bool describes_task(TaskRole role, mcp::Method method, std::string_view result);

// The places in a result where the server's task id occurs. All of them are JSON strings and point
// into the result. The first one identifies the task.
struct TaskIdPlaces {
  std::array<std::string_view, 2> tokens;
  std::size_t count = 0;
};
TaskIdPlaces task_ids_in(TaskRole role, mcp::Method method, std::string_view result);

// The task to which a message is related by its _meta.
struct RelatedTask {
  bool present = false;   // there is such a member
  std::string_view id{};  // JSON string that points into _meta; empty unless there is exactly one
};
// `meta` is params._meta, or empty.
RelatedTask related_task_in(std::string_view meta);

// ---- what policies evaluate ----
// Returns the result that policies evaluate in place of a result that describes a task: the task's
// own result or error, if it has one, otherwise a result with empty `content`. The other members of
// the task, except its id, are in the member task_member.
inline constexpr std::string_view task_member = "io.modelcontextprotocol/task";
std::string judged_task(std::string_view result);
// Returns the task with the changes that a policy has made to judged_task(result). Returns nullopt
// if the task has an error, which cannot be rewritten, or if the policy has removed task_member.
std::optional<std::string> rewritten_task(std::string_view result, std::string_view judged);

}  // namespace bulkhead
