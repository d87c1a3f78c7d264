// Tasks between a client and a server of different protocol generations: the extension of MCP
// 2026-07-28 on one side, the experimental tasks of 2025-11-25 on the other.
//
// Thread-safe. All texts must be validated JSON objects.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "mcp/scan.hpp"
#include "route/message.hpp"

namespace bulkhead {

// The state of a call that concerns a task on a server of the other generation.
struct TaskBridge {
  mcp::Method send = mcp::Method::none;  // method to send in place of the client's
  std::string task;                      // description of an ended task, until its result arrives
  std::set<std::string> answered;        // the keys for which the client has been asked
  std::uint64_t since_ns = 0;            // start of the wait for the task; 0: not yet waiting
};

// Returns the method that is first sent to the server for a client's request.
mcp::Method bridged_task_method(mcp::Method method) noexcept;
// Returns a copy of a request that no policy evaluates, with the id 0 and only these params: the
// task id or the URI, and in _meta the progress token and the trace context. A member of the trace
// context that is longer than max_trace_member bytes is left out. The message must have
// params.taskId or params.uri.
inline constexpr std::size_t max_trace_member = 8'192;
std::string reduced_request(const Message &request);

// Converts the description of a task of 2026-07-28 to one of 2025-11-25.
std::string session_task(std::string_view task);
// Converts the description of a task of 2025-11-25 to one of 2026-07-28. `outcome` is a member with
// the task's result or error, or empty.
std::string stateless_task(std::string_view task, std::string_view outcome = {});
// with_related_task() adds to a result the _meta member that relates it to the task with this id (a
// JSON string), replacing an existing one. without_related_task() removes this member.
std::string with_related_task(std::string_view result, std::string_view id);
std::string without_related_task(std::string_view result);

}  // namespace bulkhead
