#include "route/task_answers.hpp"

#include "mcp/scan.hpp"
#include "route/call.hpp"
#include "route/lane.hpp"
#include "route/session.hpp"

namespace bulkhead {
namespace {

mcp::Range range_of(std::string_view text, std::string_view part) {
  const auto begin = static_cast<std::uint32_t>(part.data() - text.data());
  return {begin, begin + static_cast<std::uint32_t>(part.size())};
}

bool is_object(std::string_view value) {
  return value.starts_with('{');
}

// Returns an error message if policies cannot evaluate the whole task, and an empty view otherwise.
// Policies evaluate judged_task(): one outcome, to which the task's other members, except its id,
// are added as one member.
std::string_view task_problem(std::string_view task) {
  const std::string_view id = mcp::member(task, "taskId");
  if (!id.empty() && !id.starts_with('"')) return "sent a task with an id that is not a string";
  const std::string_view result = mcp::member(task, "result");
  if (!is_object(result)) return {};
  if (is_object(mcp::member(task, "error"))) return "sent a task with both a result and an error";
  if (!mcp::member(result, task_member).empty()) {
    return "sent a task whose result has the reserved member io.modelcontextprotocol/task";
  }
  return {};
}

}  // namespace

std::expected<TaskAnswers::Edits, std::string> TaskAnswers::edits(const Call &call,
                                                                  std::string_view result) const {
  Edits out;
  if (call.task == TaskRole::none) return out;
  const bool describes = describes_task(call.task, call.method, result);
  if (describes) {
    const std::string_view problem = task_problem(result);
    if (!problem.empty()) return std::unexpected(std::string(problem));
  }
  out.places = task_ids_in(call.task, call.method, result);
  if (call.task == TaskRole::about) {
    out.id = call.request.task_id;
    return out;
  }
  if (!describes) {
    out.places.count = 0;
    return out;
  }
  if (out.places.count == 0) return std::unexpected("sent a task without an id");
  if (call.session == nullptr) return std::unexpected("sent a task for a client that is gone");
  out.id = call.request.task_id;
  if (!out.id.empty()) return out;
  auto id = seal(call, out.places.tokens[0]);
  if (!id) return std::unexpected("sent a task with an id that is too long");
  out.id = *std::move(id);
  return out;
}

void TaskAnswers::arrived(Call &call, std::string_view result) const {
  if (call.task != TaskRole::may_create && call.task != TaskRole::creates) return;
  const Lane *lane = lane_of(call);
  if (lane == nullptr || !describes_task(call.task, call.method, result)) return;
  const TaskIdPlaces places = task_ids_in(call.task, call.method, result);
  if (places.count == 0) return;
  const std::string_view token = places.tokens[0];
  call.created = {lane->handle(), std::string(token)};
  if (call.session == nullptr) return;
  call.request.task_id = seal(call, token).value_or("");
  if (!call.request.task_id.empty()) note_task(call, token);
}

// `id` is the server's, as a JSON string. Requires call.session.
std::optional<std::string> TaskAnswers::seal(const Call &call, std::string_view id) const {
  return needs_.ids.seal({call.server, call.name, std::string(id), call.connection}, *call.session,
                         needs_.reactor.now_ns() + needs_.limits.task_lifetime_ms * 1'000'000u);
}

void note_task(const Call &call, std::string_view id) {
  Lane *lane = lane_of(call);
  if (lane == nullptr || call.session == nullptr) return;
  std::string scratch;
  lane->task_notes.keep({std::string(mcp::unquote(id, &scratch)), call.request.task_id, call.name,
                         call.session->is_sessionless() ? 0 : call.session->handle});
}

void TaskAnswers::Edits::apply(Splice *splice, std::string_view message) const {
  for (std::size_t i = 0; i < places.count; ++i) {
    splice->replace(range_of(message, places.tokens[i]), id);
  }
}

std::string TaskAnswers::Edits::applied(std::string_view text) const {
  Splice splice(text);
  apply(&splice, text);
  const bh_str *parts = splice.parts();
  std::string out;
  for (std::uint32_t i = 0; parts != nullptr && i < splice.count(); ++i) {
    out.append(bh::view(parts[i]));
  }
  return out;
}

}  // namespace bulkhead
