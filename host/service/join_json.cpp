#include "service/join_json.hpp"

#include <charconv>

#include "bulkhead/cpp/json.hpp"
#include "bulkhead/cpp/json_writer.hpp"
#include "mcp/for_each.hpp"
#include "mcp/scan.hpp"

namespace bulkhead::program {

std::string join_request_json(const JoinRequest &request) {
  std::string marks;
  for (const auto &[part, mark] : request.marks) {
    marks += marks.empty() ? "" : ",";
    bh::json::append_quoted(&marks, part);
    marks += ':';
    bh::json::append_quoted(&marks, mark);
  }
  std::string out = "{";
  bh::json::append_member(&out, "key", request.key);
  return out + ",\"marks\":{" + marks + "}}";
}

Result<JoinRequest> read_join_request(std::string_view body) {
  const std::string_view marks =
      mcp::valid_json(body) && body.starts_with('{') ? mcp::member(body, "marks") : "";
  if (!marks.starts_with('{')) {
    return fail(BH_E_INVALID,
                R"(the body must have the form {"key":"...","marks":{"PART":"HASH"}})");
  }
  JoinRequest out;
  out.key = bh::json::member_text(body, "key");
  if (out.key.size() != mark_key_bytes) {
    return fail(BH_E_INVALID,
                "\"key\" must be " + std::to_string(mark_key_bytes) + " characters long");
  }
  mcp::for_each_member(marks, [&](std::string_view name, std::string_view value) {
    std::string part_scratch, mark_scratch;
    if (!value.starts_with('"') || out.marks.size() > max_marks) return;
    out.marks.emplace(mcp::unquote(name, &part_scratch), mcp::unquote(value, &mark_scratch));
  });
  if (out.marks.size() <= max_marks) return out;
  return fail(BH_E_INVALID, "more than " + std::to_string(max_marks) + " marks");
}

std::string join_refusal_json(const Refusal &refusal) {
  std::string out = "{";
  bh::json::append_member(&out, "error", refusal.message);
  bh::json::append_member(&out, "parts", refusal.parts);
  bh::json::append_member(&out, "loaded_ms", refusal.loaded_ms);
  return out + "}";
}

Refusal read_join_refusal(std::string_view body) {
  Refusal out;
  if (!mcp::valid_json(body) || !body.starts_with('{')) return out;
  out.message = bh::json::member_text(body, "error");
  const std::string_view loaded = mcp::member(body, "loaded_ms"),
                         parts = mcp::member(body, "parts");
  std::from_chars(loaded.data(), loaded.data() + loaded.size(), out.loaded_ms);
  if (!parts.starts_with('[')) return out;
  mcp::for_each_item(parts, [&](std::string_view item) {
    std::string scratch;
    if (!item.starts_with('"') || out.parts.size() == max_marks) return;
    out.parts.emplace_back(mcp::unquote(item, &scratch));
  });
  return out;
}

std::optional<JoinAnswer> read_join_answer(std::string_view body) {
  if (!mcp::valid_json(body) || !body.starts_with('{')) return std::nullopt;
  JoinAnswer out{bh::json::member_text(body, "path"), bh::json::member_text(body, "token")};
  if (out.path.empty() || out.token.empty()) return std::nullopt;
  return out;
}

}  // namespace bulkhead::program
