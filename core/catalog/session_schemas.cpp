#include "catalog/session_schemas.hpp"

#include "mcp/for_each.hpp"
#include "mcp/json_names.hpp"

namespace bulkhead {
namespace {

bool is_name(std::string_view key, std::string_view text) {
  return mcp::json::same_text(key.substr(1, key.size() - 2), text);
}

// Returns true if the schema is an object with exactly one `type`, which is "object".
bool is_object_schema(std::string_view schema) {
  if (!schema.starts_with('{')) return false;
  int types = 0;
  bool object = false;
  mcp::for_each_member(schema, [&](std::string_view key, std::string_view value) {
    if (!is_name(key, "type")) return;
    ++types;
    object = value == R"("object")";
  });
  return object && types == 1;
}

}  // namespace

std::optional<std::string> without_foreign_schemas(std::string_view tool) {
  constexpr std::string_view name = "outputSchema", escape = "\\u";
  constexpr auto none = std::string_view::npos;
  if (tool.find(name) == none && tool.find(escape) == none) return std::nullopt;
  bool removed = false;
  std::string kept = "{";
  mcp::for_each_member(tool, [&](std::string_view key, std::string_view value) {
    if (is_name(key, name) && !is_object_schema(value)) {
      removed = true;
      return;
    }
    if (kept.size() > 1) kept += ',';
    kept.append(key).append(":").append(value);
  });
  if (!removed) return std::nullopt;
  return kept + "}";
}

}  // namespace bulkhead
