#include "route/task_requests.hpp"

#include <string>

#include "route/lane.hpp"
#include "route/protocol.hpp"
#include "route/session.hpp"
#include "route/upstream.hpp"
#include "route/view.hpp"

namespace bulkhead {
namespace {

// Returns null if the connection has ended.
Lane *lane_with(const Upstream &upstream, std::uint64_t connection) {
  for (const auto &lane : upstream.lanes()) {
    if (lane->handle() == connection) return lane.get();
  }
  return nullptr;
}

// Finds the listed definition of the tool whose call created the task, for policies and pins.
void find_definition(Target *target) {
  const ItemList &tools = target->lane->items(ItemKind::tool);
  const ItemList::Item *item = tools.find_named(target->tool);
  if (item == nullptr) return;
  target->resolved.item = static_cast<std::uint32_t>(item - tools.items.data());
  target->resolved.definition_hash = item->hash;
}

}  // namespace

bool TaskRequests::find(Session &s, Incoming &request, Target *out) {
  const mcp::Scan &scan = *request.message.scan;
  if (scan.task_id.empty()) {
    return refuse(request,
                  std::string(mcp::to_string(scan.method)) + " requires params.taskId (a string)");
  }
  auto task = needs_.ids.open(request.message[scan.task_id], s, needs_.reactor.now_ns());
  if (!task) return refuse(request, task_not_found);
  for (std::size_t i = 0; i < s.view->lanes.size(); ++i) {
    Lane *lane = s.view->lanes[i];
    if (lane->upstream().name() != task->server) continue;
    if (task->connection != 0) lane = lane_with(lane->upstream(), task->connection);
    if (lane == nullptr) return refuse(request, task_not_found);
    out->lane = lane;
    out->range = scan.task_id;
    out->resolved.source = static_cast<std::uint32_t>(i);
    out->resolved.original_token = std::move(task->id);
    out->tool = std::move(task->tool);
    out->connection = task->connection;
    find_definition(out);
    return true;
  }
  return refuse(request, "Task not found: its server was removed from the profile");
}

bool TaskRequests::refuse(Incoming &request, std::string_view text) {
  needs_.answers.error(request, code::invalid_params, text);
  return false;
}

}  // namespace bulkhead
