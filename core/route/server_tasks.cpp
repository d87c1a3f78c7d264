#include "route/server_tasks.hpp"

#include <algorithm>
#include <memory>

#include "mcp/json_names.hpp"
#include "mcp/methods.hpp"
#include "route/lane_host.hpp"
#include "route/repeated_request.hpp"
#include "route/session.hpp"
#include "route/task_answers.hpp"
#include "route/task_ids.hpp"

namespace bulkhead {

// A client of 2025-11-25 gets a task only if it has requested one. A client of 2026-07-28 gets one
// only if it declares the extension and, on a server with sessions, the tool supports tasks.
TaskRole ServerTasks::role(const Call &call, const CallInHand &hand) const {
  if (is_task_method(call.method)) return TaskRole::about;
  if (call.method != mcp::Method::tools_call || call.session == nullptr) return TaskRole::none;
  const bool client_stateless = call.request.reply.form != nullptr;
  const bool declares = client_stateless && (call.session->caps & cap::tasks) != 0;
  const bool requests = !client_stateless && call.session->revision == newest_revision &&
                        !hand.message.scan->task.empty();
  if (conversation_.stateless())
    return declares || requests ? TaskRole::may_create : TaskRole::none;
  if (!runs_session_tasks()) return TaskRole::none;
  const bool creates = requests || (declares && tool_supports_tasks(hand.target.resolved));
  return creates ? TaskRole::creates : TaskRole::none;
}

bool ServerTasks::runs_session_tasks() const {
  return conversation_.has_sessions() && conversation_.revision() == revisions.back() &&
         lane_.server_caps().tool_tasks;
}

bool ServerTasks::tool_supports_tasks(const Resolved &tool) const {
  const ItemList &list = lane_.items(ItemKind::tool);
  if (tool.item >= list.items.size()) return false;
  const ItemList::Item &item = list.items[tool.item];
  if (item.hash != tool.definition_hash) return false;
  const std::string_view execution = mcp::member(item.raw.in(list.bytes), "execution");
  if (!execution.starts_with('{')) return false;
  const std::string_view support = mcp::member(execution, "taskSupport");
  return support == R"("optional")" || support == R"("required")";
}

bool ServerTasks::bridge(Call &call, bool same_generation) {
  if (same_generation || call.task == TaskRole::none) {
    call.bridge = nullptr;
    return false;
  }
  if (call.bridge == nullptr) {
    call.bridge = std::make_unique<TaskBridge>();
    call.bridge->send = bridged_task_method(call.method);
  }
  return true;
}

CallInHand ServerTasks::reduced(const CallInHand &hand) {
  const std::string text = reduced_request(hand.message);
  mcp::Scan scan;
  mcp::ScanError error;
  static_cast<void>(mcp::scan(text, &scan, &error));  // composed from validated tokens
  CallInHand out{{}, hand.target, {}, ParkedMessage({text, &scan})};
  out.message = out.kept.get();
  out.target.range = scan.task_id.empty() ? scan.uri : scan.task_id;
  return out;
}

void ServerTasks::cancel(std::string_view id) {
  std::string scratch;
  const std::string_view name = mcp::unquote(id, &scratch);
  lane_.task_notes.forget(name);
  constexpr mcp::Method method = mcp::Method::tasks_cancel;
  if (lane_.state() != LaneState::ready || !conversation_.takes(method)) return;
  if (!conversation_.stateless() && !lane_.server_caps().task_cancel) return;
  if (open_cancels() >= max_cancels) return;
  Exchange *e = wire_.own_exchange(Purpose::quiet, method, host_.limits().request_timeout_ms);
  if (e == nullptr) return;
  e->takes_place = false;
  cancels_.push_back(e->id);
  const auto headers =
      conversation_.headers_for(*conversation_.edge(), {method, mcp::to_string(method), name, {}});
  const RequestMeta &meta = conversation_.meta_for(nullptr, true);
  wire_.send_own(*e, meta.added_to(R"({"taskId":)" + std::string(id) + "}"), 0,
                 headers.value_or(std::span<const bh_header>{}));
}

std::size_t ServerTasks::open_cancels() {
  std::erase_if(cancels_,
                [this](std::uint64_t id) { return host_.exchanges().get(id) == nullptr; });
  return cancels_.size();
}

void ServerTasks::cancel_stray(std::string_view result) {
  if (conversation_.edge() == nullptr) return;
  if (!conversation_.stateless() && !runs_session_tasks()) return;
  const TaskRole role = conversation_.stateless() ? TaskRole::may_create : TaskRole::creates;
  if (!describes_task(role, mcp::Method::tools_call, result)) return;
  const TaskIdPlaces places = task_ids_in(role, mcp::Method::tools_call, result);
  std::string scratch;
  if (places.count == 0) return;
  const std::string_view id = places.tokens[0];
  if (id.size() > TaskIds::max_id || lane_.task_notes.find(mcp::unquote(id, &scratch)) != nullptr)
    return;
  cancel(id);
}

}  // namespace bulkhead
