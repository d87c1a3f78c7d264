#include "route/task_bridge.hpp"

#include <array>
#include <bitset>
#include <cstddef>

#include "mcp/for_each.hpp"
#include "mcp/json_names.hpp"
#include "mcp/methods.hpp"
#include "route/task_forms.hpp"

namespace bulkhead {
namespace {

// The members of a task of 2025-11-25, and their keys in 2026-07-28.
struct SessionMember {
  std::string_view name, stateless_key;
};
constexpr std::array<SessionMember, 7> session_members = {{
    {"taskId", R"("taskId")"},
    {"status", R"("status")"},
    {"statusMessage", R"("statusMessage")"},
    {"createdAt", R"("createdAt")"},
    {"lastUpdatedAt", R"("lastUpdatedAt")"},
    {"ttl", R"("ttlMs")"},
    {"pollInterval", R"("pollIntervalMs")"},
}};

constexpr std::string_view related_key = R"("io.modelcontextprotocol/related-task")";

bool has_name(std::string_view key, std::string_view name) noexcept {
  return mcp::json::same_text(key.substr(1, key.size() - 2), name);
}

void put_member(std::string *object, std::string_view key, std::string_view value) {
  if (!object->ends_with('{')) *object += ',';
  object->append(key).append(":").append(value);
}

bool is_status(std::string_view value, std::string_view status) {
  std::string scratch;
  return value.starts_with('"') && mcp::unquote(value, &scratch) == status;
}

// Copies the members of a _meta object except the related task. Returns an empty string if there
// are none.
std::string other_meta(std::string_view meta) {
  std::string out = "{";
  if (meta.starts_with('{')) {
    mcp::for_each_member(meta, [&out](std::string_view key, std::string_view value) {
      if (!has_name(key, related_key.substr(1, related_key.size() - 2))) {
        put_member(&out, key, value);
      }
    });
  }
  return out == "{" ? std::string() : out + "}";
}

}  // namespace

mcp::Method bridged_task_method(mcp::Method method) noexcept {
  return method == mcp::Method::tasks_result ? mcp::Method::tasks_get : method;
}

std::string reduced_request(const Message &request) {
  const mcp::Scan &scan = *request.scan;
  std::string meta = "{";
  if (!scan.progress_token.empty()) {
    put_member(&meta, R"("progressToken")", request[scan.progress_token]);
  }
  for (const std::string_view key : {R"("traceparent")", R"("tracestate")", R"("baggage")"}) {
    if (scan.meta.empty()) break;
    const std::string_view value = mcp::member(request[scan.meta], key.substr(1, key.size() - 2));
    if (!value.empty() && value.size() <= max_trace_member) put_member(&meta, key, value);
  }
  std::string out = R"({"jsonrpc":"2.0","id":0,"method":")";
  const bool task = is_task_method(scan.method);
  out.append(mcp::to_string(scan.method))
      .append(task ? R"(","params":{"taskId":)" : R"(","params":{"uri":)");
  out.append(request[task ? scan.task_id : scan.uri]);
  if (meta != "{") out.append(R"(,"_meta":)").append(meta).append("}");
  return out + "}}";
}

std::string session_task(std::string_view task) {
  const std::string_view result = mcp::member(task, "result");
  const bool failed = result.starts_with('{') && mcp::member(result, "isError") == "true";
  std::string out = "{";
  bool ttl = false;
  mcp::for_each_member(task, [&](std::string_view key, std::string_view value) {
    for (const std::string_view gone :
         {"resultType", "result", "error", "inputRequests", "cacheScope", "_meta"}) {
      if (has_name(key, gone)) return;
    }
    if (has_name(key, "ttlMs")) {
      ttl = true;
      return put_member(&out, R"("ttl")", value);
    }
    if (has_name(key, "pollIntervalMs")) return put_member(&out, R"("pollInterval")", value);
    const bool fails = failed && has_name(key, "status") && is_status(value, "completed");
    put_member(&out, key, fails ? R"("failed")" : value);
  });
  if (!ttl) put_member(&out, R"("ttl")", "null");
  return out + "}";
}

std::string stateless_task(std::string_view task, std::string_view outcome) {
  const bool with_result = outcome.starts_with(R"("result")");
  std::string out = "{";
  bool ttl = false, asks = false;
  std::bitset<session_members.size()> seen;
  mcp::for_each_member(task, [&](std::string_view key, std::string_view value) {
    std::size_t at = 0;
    while (at < seen.size() && !has_name(key, session_members[at].name)) ++at;
    if (at == seen.size() || seen.test(at)) return;
    seen.set(at);
    const SessionMember &member = session_members[at];
    if (member.name == "ttl") ttl = true;
    if (member.name == "status") {
      asks = is_status(value, "input_required");
      if (!outcome.empty()) value = with_result ? R"("completed")" : R"("failed")";
    }
    put_member(&out, member.stateless_key, value);
  });
  if (!ttl) put_member(&out, R"("ttlMs")", "null");
  // The server asks for input only through requests of its own.
  if (asks && outcome.empty()) put_member(&out, R"("inputRequests")", "{}");
  if (!outcome.empty()) out.append(",").append(outcome);
  return out + "}";
}

std::string with_related_task(std::string_view result, std::string_view id) {
  std::string meta = other_meta(mcp::member(result, "_meta"));
  if (meta.empty()) meta = "{}";
  meta.pop_back();
  put_member(&meta, related_key, R"({"taskId":)" + std::string(id) + "}");
  std::string out = "{";
  mcp::for_each_member(result, [&out](std::string_view key, std::string_view value) {
    if (!has_name(key, "_meta")) put_member(&out, key, value);
  });
  put_member(&out, R"("_meta")", meta + "}");
  return out + "}";
}

std::string without_related_task(std::string_view result) {
  std::string out = "{";
  mcp::for_each_member(result, [&out](std::string_view key, std::string_view value) {
    if (!has_name(key, "_meta")) return put_member(&out, key, value);
    const std::string meta = value.starts_with('{') ? other_meta(value) : std::string(value);
    if (!meta.empty()) put_member(&out, key, meta);
  });
  return out + "}";
}

}  // namespace bulkhead
