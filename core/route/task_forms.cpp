#include "route/task_forms.hpp"

#include "mcp/for_each.hpp"
#include "mcp/json_names.hpp"
#include "route/judge.hpp"

namespace bulkhead {
namespace {

constexpr std::string_view related_task = "io.modelcontextprotocol/related-task";

// Returns the member if it is an object, otherwise an empty view.
std::string_view object_in(std::string_view object, std::string_view name) noexcept {
  const std::string_view value =
      object.starts_with('{') ? mcp::member(object, name) : std::string_view{};
  return value.starts_with('{') ? value : std::string_view{};
}

bool is_named(std::string_view key, std::string_view name) noexcept {
  return mcp::json::same_text(key.substr(1, key.size() - 2), name);
}

void append_member(std::string *object, std::string_view key, std::string_view value) {
  if (!object->ends_with('{')) *object += ',';
  object->append(key).append(":").append(value);
}

// Composes the members of a task, in their order, except its id and, if they are objects, its
// result and its error.
std::string task_members(std::string_view result) {
  std::string out = "{";
  mcp::for_each_member(result, [&out](std::string_view key, std::string_view value) {
    if (is_named(key, "taskId")) return;
    const bool outcome = is_named(key, "result") || is_named(key, "error");
    if (!outcome || !value.starts_with('{')) append_member(&out, key, value);
  });
  return out + "}";
}

}  // namespace

bool declares_tasks(std::string_view capabilities) noexcept {
  return !object_in(object_in(capabilities, "extensions"), tasks_extension).empty();
}

bool describes_task(TaskRole role, mcp::Method method, std::string_view result) {
  if (!result.starts_with('{')) return false;
  switch (role) {
    case TaskRole::none:
      return false;
    case TaskRole::may_create: {
      std::string scratch;
      const std::string_view type = mcp::member(result, "resultType");
      return type.starts_with('"') && mcp::unquote(type, &scratch) == "task";
    }
    case TaskRole::creates:
      return !object_in(result, "task").empty();
    case TaskRole::about:
      return method != mcp::Method::tasks_result;
  }
  return false;
}

TaskIdPlaces task_ids_in(TaskRole role, mcp::Method method, std::string_view result) {
  TaskIdPlaces out;
  const auto add = [&out](std::string_view object) {
    const std::string_view token =
        object.empty() ? std::string_view{} : mcp::member(object, "taskId");
    if (token.starts_with('"')) out.tokens[out.count++] = token;
  };
  if (role == TaskRole::none || !result.starts_with('{')) return out;
  if (role == TaskRole::creates) {
    add(object_in(result, "task"));
  } else if (describes_task(role, method, result)) {
    add(result);
  }
  add(object_in(object_in(result, "_meta"), related_task));
  return out;
}

RelatedTask related_task_in(std::string_view meta) {
  RelatedTask out;
  if (!meta.starts_with('{')) return out;
  std::size_t ids = 0;
  mcp::for_each_member(meta, [&](std::string_view key, std::string_view value) {
    if (!is_named(key, related_task)) return;
    ids += out.present ? 1 : 0;  // a duplicate
    out.present = true;
    if (!value.starts_with('{')) return;
    mcp::for_each_member(value, [&](std::string_view name, std::string_view id) {
      if (!is_named(name, "taskId")) return;
      ++ids;
      out.id = id;
    });
  });
  if (ids != 1 || !out.id.starts_with('"')) out.id = {};
  return out;
}

// task_member is the first member. If the outcome has a member of the same name, the text has
// duplicate members, which policies reject.
std::string judged_task(std::string_view result) {
  std::string out = "{\"";
  out.append(task_member).append("\":").append(task_members(result));
  std::string of_error;
  std::string_view outcome = object_in(result, "result");
  if (outcome.empty()) {
    const std::string_view error = object_in(result, "error");
    of_error = error.empty() ? R"({"content":[]})" : error_as_result(error);
    outcome = of_error;
  }
  mcp::for_each_member(outcome, [&out](std::string_view key, std::string_view value) {
    append_member(&out, key, value);
  });
  return out + "}";
}

std::optional<std::string> rewritten_task(std::string_view result, std::string_view judged) {
  if (!object_in(result, "error").empty() || !judged.starts_with('{')) return std::nullopt;
  std::string outcome = "{";
  std::string_view members;
  mcp::for_each_member(judged, [&](std::string_view key, std::string_view value) {
    if (is_named(key, task_member)) {
      members = value;
    } else {
      append_member(&outcome, key, value);
    }
  });
  if (!members.starts_with('{')) return std::nullopt;
  std::string out(members.substr(0, members.rfind('}')));
  const std::string_view id = mcp::member(result, "taskId");
  if (!id.empty()) append_member(&out, "\"taskId\"", id);
  if (!object_in(result, "result").empty()) append_member(&out, "\"result\"", outcome + "}");
  return out + "}";
}

}  // namespace bulkhead
