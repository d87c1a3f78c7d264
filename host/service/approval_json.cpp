#include "service/approval_json.hpp"

#include <algorithm>
#include <charconv>
#include <optional>

#include "bulkhead/cpp/json_reader.hpp"
#include "bulkhead/cpp/json_writer.hpp"
#include "mcp/for_each.hpp"
#include "mcp/scan.hpp"

namespace bulkhead::program {
namespace {

using bh::json::append_member;
using bh::json::trimmed;

constexpr std::uint64_t usual_watch_s = 5, most_watch_s = 60;

// `scope` is the scope of a granted approval, or empty for a pending request.
std::string json_of(const ApprovalQuestion &q, const std::string &scope,
                    std::uint64_t now_unix_ms) {
  std::string out = "{";
  append_member(&out, "id", q.id);
  append_member(&out, "server", q.server);
  append_member(&out, "method", q.method);
  append_member(&out, "name", q.name);
  append_member(&out, "arguments", q.arguments);
  out.append(",\"arguments_cut\":").append(q.arguments_cut ? "true" : "false");
  append_member(&out, "arguments_bytes", q.arguments_bytes);
  append_member(&out, "meta", q.meta);
  append_member(&out, "extra", q.extra);
  append_member(&out, "digest", q.digest);
  append_member(&out, "rule", q.rule);
  append_member(&out, "reason", q.reason);
  append_member(&out, "process_name", q.process_name);
  append_member(&out, "claimed_name", q.claimed_name);
  append_member(&out, "principal", q.principal);
  append_member(&out, "transport", q.transport);
  append_member(&out, "peer", q.peer);
  // Written as a string, because the number may exceed the precision of a JavaScript number.
  append_member(&out, "session", std::to_string(q.session));
  if (!scope.empty()) append_member(&out, "scope", scope);
  append_member(&out, "asked_unix_ms", q.asked_unix_ms);
  if (!scope.empty() && q.expires_unix_ms == 0) return out + "}";
  append_member(&out, "expires_unix_ms", q.expires_unix_ms);
  append_member(&out, "expires_in_ms",
                q.expires_unix_ms > now_unix_ms ? q.expires_unix_ms - now_unix_ms : 0);
  return out + "}";
}

// Returns the content of a JSON string, or nullopt if the value is not a string.
std::optional<std::string> text_of(std::string_view value) {
  if (!value.starts_with('"')) return std::nullopt;
  std::string scratch;
  return std::string(mcp::unquote(value, &scratch));
}

std::optional<std::uint64_t> number_of(std::string_view value) {
  std::uint64_t out = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), out);
  if (error != std::errc{} || end != value.data() + value.size()) return std::nullopt;
  return out;
}

// Returns an error if the body is not a JSON object, contains duplicate members, or contains
// members that are not in `known`.
Result<void> check_object(std::string_view body, std::initializer_list<std::string_view> known) {
  if (!mcp::valid_json(body, 4) || !body.starts_with('{') || mcp::has_duplicate_members(body)) {
    return fail(BH_E_INVALID, "the body must be a JSON object without duplicate members");
  }
  std::string unknown, scratch;
  mcp::for_each_member(body, [&](std::string_view key, std::string_view) {
    const std::string_view name = mcp::unquote(key, &scratch);
    const bool fine = std::find(known.begin(), known.end(), name) != known.end();
    if (!fine && unknown.empty()) unknown = std::string(name.substr(0, 100));
  });
  if (unknown.empty()) return {};
  std::string names;
  for (const std::string_view name : known) names.append(names.empty() ? "" : ", ").append(name);
  return fail(BH_E_INVALID, "\"" + unknown + "\" is not a known member; known members: " + names);
}

Result<ApprovalScope> read_scope(std::string_view value) {
  ApprovalScope scope;
  if (value.empty()) return scope;
  if (value.starts_with('{')) {
    if (auto fine = check_object(value, {"minutes", "tool"}); !fine) {
      return std::unexpected(fine.error());
    }
    const std::string_view given = mcp::member(value, "minutes"), tool = mcp::member(value, "tool");
    scope.tool = tool == "true";
    if (!given.empty()) {
      scope.kind = ApprovalScope::Kind::minutes;
      scope.minutes = static_cast<std::uint32_t>(
          std::min<std::uint64_t>(number_of(given).value_or(0), ApprovalScope::max_minutes + 1));
    } else if (scope.tool) {
      scope.kind = ApprovalScope::Kind::session;
    }
    const bool named = !given.empty() || !tool.empty();
    if (named && (tool.empty() || scope.tool) && scope.valid()) return scope;
  } else if (const auto text = text_of(value)) {
    if (*text == "once") return scope;
    if (*text == "session") return ApprovalScope{ApprovalScope::Kind::session, 0};
  }
  return fail(BH_E_INVALID, "scope must be \"once\", \"session\", {\"minutes\": 1 to " +
                                std::to_string(ApprovalScope::max_minutes) +
                                "}, {\"tool\": true} or {\"tool\": true, \"minutes\": 1 to " +
                                std::to_string(ApprovalScope::max_tool_minutes) + "}");
}

}  // namespace

std::string approvals_json(const ApprovalList &list, std::uint64_t now_unix_ms) {
  std::string out = "{\"waiting\":" + std::to_string(list.waiting) + ",\"pending\":[";
  for (const ApprovalQuestion &question : list.questions) {
    if (!out.ends_with('[')) out += ',';
    out += json_of(question, {}, now_unix_ms);
  }
  out += "],\"granted\":[";
  for (const ApprovalGrant &grant : list.grants) {
    if (!out.ends_with('[')) out += ',';
    out += json_of(grant.question, to_string(grant.scope), now_unix_ms);
  }
  return out + "]}";
}

Result<ApprovalAnswer> read_approval_answer(std::string_view body, std::string_view id) {
  body = trimmed(body);
  if (auto fine = check_object(body, {"decision", "scope", "surface"}); !fine) {
    return std::unexpected(fine.error());
  }
  ApprovalAnswer answer;
  answer.id = id;
  const auto decision = text_of(mcp::member(body, "decision"));
  if (decision != "allow" && decision != "deny" && decision != "revoke") {
    return fail(BH_E_INVALID, "decision must be \"allow\", \"deny\" or \"revoke\"");
  }
  answer.allow = decision == "allow";
  answer.revoke = decision == "revoke";
  const auto scope = read_scope(mcp::member(body, "scope"));
  if (!scope) return std::unexpected(scope.error());
  answer.scope = *scope;
  const std::string_view surface = mcp::member(body, "surface");
  if (surface == R"("terminal")") {
    answer.surface = ApprovalSurface::terminal;
  } else if (!surface.empty() && surface != R"("api")") {
    return fail(BH_E_INVALID, "surface must be \"terminal\" or \"api\"");
  }
  return answer;
}

Result<ApprovalWatch> read_approval_watch(std::string_view body) {
  body = trimmed(body);
  if (body.empty()) return ApprovalWatch{usual_watch_s * 1000};
  if (auto fine = check_object(body, {"seconds"}); !fine) return std::unexpected(fine.error());
  const std::string_view given = mcp::member(body, "seconds");
  const auto seconds = given.empty() ? std::optional(usual_watch_s) : number_of(given);
  if (!seconds || *seconds < 1 || *seconds > most_watch_s) {
    return fail(BH_E_INVALID, "seconds must be 1 to " + std::to_string(most_watch_s));
  }
  return ApprovalWatch{*seconds * 1000};
}

}  // namespace bulkhead::program
