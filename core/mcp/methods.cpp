#include "mcp/methods.hpp"

#include <iterator>

#include "mcp/json_names.hpp"

namespace bulkhead::mcp {
namespace {

// Indexed by Method.
constexpr std::string_view method_names[] = {"",
                                             "other",
                                             "initialize",
                                             "ping",
                                             "server/discover",
                                             "tools/list",
                                             "tools/call",
                                             "resources/list",
                                             "resources/templates/list",
                                             "resources/read",
                                             "resources/subscribe",
                                             "resources/unsubscribe",
                                             "prompts/list",
                                             "prompts/get",
                                             "completion/complete",
                                             "logging/setLevel",
                                             "roots/list",
                                             "sampling/createMessage",
                                             "elicitation/create",
                                             "subscriptions/listen",
                                             "tasks/get",
                                             "tasks/result",
                                             "tasks/list",
                                             "tasks/update",
                                             "tasks/cancel",
                                             "notifications/initialized",
                                             "notifications/cancelled",
                                             "notifications/progress",
                                             "notifications/message",
                                             "notifications/resources/updated",
                                             "notifications/tools/list_changed",
                                             "notifications/resources/list_changed",
                                             "notifications/prompts/list_changed",
                                             "notifications/roots/list_changed",
                                             "notifications/elicitation/complete",
                                             "notifications/tasks",
                                             "notifications/tasks/status",
                                             "notifications/subscriptions/acknowledged"};
constexpr auto first_known = static_cast<std::size_t>(Method::initialize);
static_assert(std::size(method_names) ==
              static_cast<std::size_t>(Method::notifications_subscriptions_acknowledged) + 1);

}  // namespace

std::string_view to_string(Method method) noexcept {
  const auto i = static_cast<std::size_t>(method);
  return i < std::size(method_names) ? method_names[i] : std::string_view("other");
}

Method method_of(std::string_view inside) noexcept {
  const bool escaped = inside.find('\\') != std::string_view::npos;
  for (std::size_t i = first_known; i < std::size(method_names); ++i) {
    if (escaped ? json::same_text(inside, method_names[i]) : inside == method_names[i]) {
      return static_cast<Method>(i);
    }
  }
  return Method::other;
}

bool is_read(Method method) noexcept {
  switch (method) {
    case Method::server_discover:
    case Method::tools_list:
    case Method::resources_list:
    case Method::resources_templates_list:
    case Method::resources_read:
    case Method::prompts_list:
    case Method::prompts_get:
    case Method::completion_complete:
    case Method::tasks_get:
      return true;
    default:
      return false;
  }
}

}  // namespace bulkhead::mcp
