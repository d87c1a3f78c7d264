// Lists the members of `params` that the scanner locates and, for each method whose requests are
// forwarded to servers, the members that MCP defines. Internal to core/mcp.
#pragma once

#include <cstdint>
#include <iterator>
#include <string_view>

#include "mcp/json_names.hpp"
#include "mcp/member_names.hpp"
#include "mcp/scan.hpp"

namespace bulkhead::mcp {

inline constexpr json::KnownName param_names[] = {
    "_meta",         "ref",       "name",    "uri",           "cursor",          "arguments",
    "progressToken", "requestId", "level",   "elicitationId", "protocolVersion", "capabilities",
    "clientInfo",    "argument",  "context", "task",          "inputResponses",  "requestState",
    "taskId"};
enum ParamName : unsigned {
  meta_param,
  ref_param,
  name_param,
  uri_param,
  arguments_param = 5,
  argument_param = 13,
  context_param,
  task_param,
  input_responses_param,
  request_state_param,
  task_id_param
};
static_assert(std::size(param_names) == task_id_param + 1);

// Sets of ParamName bits. Both are empty for methods that params_of() does not list.
struct MethodParams {
  std::uint32_t named = 0;  // members that have their own names in rules, approvals and records
  std::uint32_t more = 0;   // other members that MCP's schema defines
};

constexpr std::uint32_t param_bit(ParamName name) noexcept {
  return 1u << name;
}

constexpr MethodParams params_of(Method method) noexcept {
  constexpr std::uint32_t meta = param_bit(meta_param);
  constexpr std::uint32_t inputs =
      param_bit(input_responses_param) | param_bit(request_state_param);
  switch (method) {
    case Method::tools_call:
      return {meta | param_bit(name_param) | param_bit(arguments_param),
              inputs | param_bit(task_param)};
    case Method::prompts_get:
      return {meta | param_bit(name_param) | param_bit(arguments_param), inputs};
    case Method::resources_read:
      return {meta | param_bit(uri_param), inputs};
    case Method::resources_subscribe:
    case Method::resources_unsubscribe:
      return {meta | param_bit(uri_param), 0};
    case Method::completion_complete:
      return {meta | param_bit(ref_param) | param_bit(argument_param) | param_bit(context_param),
              0};
    case Method::tasks_get:
    case Method::tasks_result:
    case Method::tasks_cancel:
      return {meta | param_bit(task_id_param), 0};
    case Method::tasks_update:
      return {meta | param_bit(task_id_param), param_bit(input_responses_param)};
    default:
      return {};
  }
}

// `key` is a validated string token with quotes.
inline bool is_param(std::string_view key, std::uint32_t bits) noexcept {
  const std::string_view inside = key.substr(1, key.size() - 2);
  for (unsigned i = 0; i < std::size(param_names); ++i) {
    if ((bits >> i & 1) != 0 && json::same_text(inside, param_names[i].text)) return true;
  }
  return false;
}

}  // namespace bulkhead::mcp
