// Determines what a call has to do with tasks at the lane's server.
#include <algorithm>
#include <memory>

#include "route/session.hpp"
#include "route/splice.hpp"
#include "route/task_ids.hpp"
#include "route/upstream.hpp"
#include "route/wire_lane.hpp"

namespace bulkhead {

// A client of the other generation gets a task only if it has requested one (2025-11-25), or
// declares the extension and the tool supports tasks (2026-07-28).
TaskRole WireLane::task_role(const Call &call, const CallInHand &hand) const {
  if (is_task_method(call.method)) return TaskRole::about;
  if (call.method != mcp::Method::tools_call || call.session == nullptr) return TaskRole::none;
  const bool client_stateless = call.request.reply.form != nullptr;
  const bool declares = client_stateless && (call.session->caps & cap::tasks) != 0;
  const bool requests = !client_stateless && call.session->revision == newest_revision &&
                        !hand.message.scan->task.empty();
  if (edge_->stateless()) return declares || requests ? TaskRole::may_create : TaskRole::none;
  if (!runs_session_tasks()) return TaskRole::none;
  const bool creates = requests || (declares && tool_supports_tasks(hand.target.resolved));
  return creates ? TaskRole::creates : TaskRole::none;
}

bool WireLane::runs_session_tasks() const {
  return !edge_->stateless() && revision_ == revisions.back() && server_caps_.tool_tasks;
}

bool WireLane::tool_supports_tasks(const Resolved &tool) const {
  const ItemList &list = items(ItemKind::tool);
  if (tool.item >= list.items.size()) return false;
  const ItemList::Item &item = list.items[tool.item];
  if (item.hash != tool.definition_hash) return false;
  const std::string_view execution = mcp::member(item.raw.in(list.bytes), "execution");
  if (!execution.starts_with('{')) return false;
  const std::string_view support = mcp::member(execution, "taskSupport");
  return support == R"("optional")" || support == R"("required")";
}

bool WireLane::bridge_task(Call &call, bool same_generation) {
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

CallInHand WireLane::reduced(const CallInHand &hand) {
  const std::string text = reduced_request(hand.message);
  mcp::Scan scan;
  mcp::ScanError error;
  static_cast<void>(mcp::scan(text, &scan, &error));  // composed from validated tokens
  CallInHand out{{}, hand.target, {}, ParkedMessage({text, &scan})};
  out.message = out.kept.get();
  out.target.range = scan.task_id.empty() ? scan.uri : scan.task_id;
  return out;
}

void WireLane::cancel_task(std::string_view id) {
  std::string scratch;
  const std::string_view name = mcp::unquote(id, &scratch);
  task_notes.forget(name);
  constexpr mcp::Method method = mcp::Method::tasks_cancel;
  if (state_ != LaneState::ready || !takes(method)) return;
  if (!edge_->stateless() && !server_caps_.task_cancel) return;
  if (open_cancels() >= max_cancels) return;
  Exchange *e = own_exchange(Purpose::quiet, method, host_.limits().request_timeout_ms);
  if (e == nullptr) return;
  e->takes_place = false;
  cancels_.push_back(e->id);
  const auto headers = headers_for(*edge_, {method, mcp::to_string(method), name, {}});
  send_own(*e, meta_for(nullptr, true).added_to(R"({"taskId":)" + std::string(id) + "}"),
           headers.value_or(std::span<const bh_header>{}));
}

std::size_t WireLane::open_cancels() {
  std::erase_if(cancels_,
                [this](std::uint64_t id) { return host_.exchanges().get(id) == nullptr; });
  return cancels_.size();
}

void WireLane::cancel_stray_task(std::string_view result) {
  if (edge_ == nullptr) return;
  if (!edge_->stateless() && !runs_session_tasks()) return;
  const TaskRole role = edge_->stateless() ? TaskRole::may_create : TaskRole::creates;
  if (!describes_task(role, mcp::Method::tools_call, result)) return;
  const TaskIdPlaces places = task_ids_in(role, mcp::Method::tools_call, result);
  std::string scratch;
  if (places.count == 0) return;
  const std::string_view id = places.tokens[0];
  if (id.size() > TaskIds::max_id || task_notes.find(mcp::unquote(id, &scratch)) != nullptr) return;
  cancel_task(id);
}

}  // namespace bulkhead
