#include "route/task_rounds.hpp"

#include <algorithm>
#include <utility>

#include "mcp/for_each.hpp"
#include "route/answer_form.hpp"
#include "route/splice.hpp"

namespace bulkhead {
namespace {

using Step = TaskRounds::Step;

// Sets *room to a message with this result or error. The id is replaced later.
Step replace_answer(std::string *room, std::string_view member, std::string_view value) {
  room->assign(R"({"jsonrpc":"2.0","id":0,")").append(member).append("\":");
  room->append(value).append("}");
  return Step::replaced;
}

std::string status_of(std::string_view task) {
  std::string scratch;
  const std::string_view token = mcp::member(task, "status");
  return token.starts_with('"') ? std::string(mcp::unquote(token, &scratch)) : std::string();
}

bool has_ended(std::string_view status) {
  return status == "completed" || status == "failed";
}

// Returns true if the task requests input with a key for which the client has not been asked. The
// server keeps listing a request until it has handled the client's input.
bool has_new_keys(std::string_view task, const std::set<std::string> &answered) {
  const std::string_view requests = mcp::member(task, "inputRequests");
  bool fresh = false;
  if (!requests.starts_with('{')) return false;
  mcp::for_each_member(requests, [&](std::string_view key, std::string_view) {
    fresh = fresh || !answered.contains(std::string(key));
  });
  return fresh;
}

}  // namespace

// The converted response needs no further conversion (AnswerForm).
Step TaskRounds::take(Call &call, const Message &answer, std::string *room) {
  const bool error = answer.scan->kind == mcp::Kind::error;
  const std::string_view result = error ? std::string_view{} : answer[answer.scan->result];
  const bool for_result = call.bridge->send == mcp::Method::tasks_result;
  if ((error && !for_result) || (!error && !result.starts_with('{'))) return Step::unchanged;
  Step step = Step::unchanged;
  switch (call.method) {
    case mcp::Method::tools_call:
      step = created(call, result, room);
      break;
    case mcp::Method::tasks_get:
      step = described(call, answer, room);
      break;
    case mcp::Method::tasks_cancel:
      step = cancelled(call, result, room);
      break;
    case mcp::Method::tasks_result:
      step = awaited(call, answer, room);
      break;
    default:
      break;
  }
  if (step == Step::replaced) call.answer_form = nullptr;
  return step;
}

Step TaskRounds::created(Call &call, std::string_view result, std::string *room) {
  if (!describes_task(call.task, call.method, result)) return Step::unchanged;
  if (call.task == TaskRole::may_create) {
    call.task = TaskRole::creates;
    return replace_answer(room, "result", R"({"task":)" + session_task(result) + "}");
  }
  call.task = TaskRole::may_create;
  const std::string task = stateless_task(mcp::member(result, "task"));
  return replace_answer(room, "result", R"({"resultType":"task",)" + task.substr(1));
}

Step TaskRounds::described(Call &call, const Message &answer, std::string *room) {
  const std::string_view result = answer[answer.scan->result];
  if (call.request.reply.form == nullptr) {
    return replace_answer(room, "result", session_task(result));
  }
  TaskBridge &bridge = *call.bridge;
  if (bridge.send == mcp::Method::tasks_result) {
    const bool error = answer.scan->kind == mcp::Kind::error;
    const std::string outcome = error ? R"("error":)" + std::string(answer[answer.scan->error])
                                      : R"("result":)" + without_related_task(result);
    return replace_answer(room, "result", stateless_task(bridge.task, outcome));
  }
  if (!has_ended(status_of(result))) {
    return replace_answer(room, "result", stateless_task(result));
  }
  bridge.task = result;
  return send_next(call, mcp::Method::tasks_result, 0);
}

Step TaskRounds::cancelled(Call &call, std::string_view result, std::string *room) {
  if (call.request.reply.form != nullptr) return replace_answer(room, "result", "{}");
  if (call.bridge->send == mcp::Method::tasks_cancel) {
    return send_next(call, mcp::Method::tasks_get, 0);
  }
  return replace_answer(room, "result", session_task(result));
}

Step TaskRounds::awaited(Call &call, const Message &answer, std::string *room) {
  TaskBridge &bridge = *call.bridge;
  if (bridge.send == mcp::Method::tasks_update) {
    bridge.since_ns = needs_.reactor.now_ns();
    return send_next(call, mcp::Method::tasks_get, 0);
  }
  const std::string_view task = answer[answer.scan->result];
  const std::string status = status_of(task);
  const std::string_view result = mcp::member(task, "result"), error = mcp::member(task, "error");
  const std::string_view id = mcp::member(task, "taskId");
  if (status == "completed" && result.starts_with('{') && id.starts_with('"')) {
    const std::string edited = call.answer_form->edited(result);
    return replace_answer(room, "result", with_related_task(edited, id));
  }
  if (status == "failed" && error.starts_with('{')) return replace_answer(room, "error", error);
  if (status == "cancelled") {
    needs_.ends.fail(call, code::invalid_params, "the task was cancelled, so it has no result",
                     BH_OUTCOME_ERROR);
    return Step::waits;
  }
  if (status == "input_required" && has_new_keys(task, bridge.answered)) return ask(call, answer);
  if (status != "working" && status != "input_required") {
    needs_.ends.fail(call, code::internal_error,
                     "server \"" + call.server + "\" sent a task without a valid status or result",
                     BH_OUTCOME_ERROR);
    return Step::waits;
  }
  const std::uint64_t now = needs_.reactor.now_ns();
  if (bridge.since_ns == 0) bridge.since_ns = call.start_ns;
  if (now - bridge.since_ns >= needs_.limits.call_timeout_ms * 1'000'000u) {
    needs_.ends.fail(
        call, code::timeout,
        "the task has not ended within limits.call_timeout_ms; send tasks/result again",
        BH_OUTCOME_TIMEOUT);
    return Step::waits;
  }
  const std::uint64_t wanted = parse_number(mcp::member(task, "pollIntervalMs"));
  return send_next(call, mcp::Method::tasks_get,
                   std::clamp(wanted == 0 ? pause_ms : wanted, min_pause_ms, max_pause_ms));
}

Step TaskRounds::ask(Call &call, const Message &answer) {
  call.bridge->send = mcp::Method::tasks_update;
  needs_.rounds.begin(call, answer);
  return Step::waits;
}

Step TaskRounds::send_next(Call &call, mcp::Method method, std::uint64_t pause) {
  call.bridge->send = method;
  needs_.rounds.pause(call, pause);
  return Step::waits;
}

}  // namespace bulkhead
