#include "route/session_schemas.hpp"

#include "mcp/for_each.hpp"
#include "route/removed_members.hpp"

namespace bulkhead {
namespace {

constexpr std::string_view schema_name = R"("outputSchema")";

// Returns true if the schema is an object with exactly one `type`, which is "object".
bool is_object_schema(std::string_view schema) {
  if (!schema.starts_with('{')) return false;
  int types = 0;
  bool object = false;
  mcp::for_each_member(schema, [&](std::string_view key, std::string_view value) {
    if (key != R"("type")") return;
    ++types;
    object = value == R"("object")";
  });
  return object && types == 1;
}

// Appends the tool without its members outputSchema that are not object schemas.
void append_without_schemas(std::string_view tool, std::string *out) {
  RemovedMembers removed(tool);
  mcp::for_each_member(tool, [&](std::string_view key, std::string_view value) {
    if (key != schema_name || is_object_schema(value)) return;
    const auto begin = static_cast<std::uint32_t>(key.data() - tool.data());
    const auto end = static_cast<std::uint32_t>(value.data() + value.size() - tool.data());
    removed.add({begin, end});
  });
  std::size_t from = 0;
  for (const mcp::Range range : removed.ranges()) {
    out->append(tool.substr(from, range.begin - from));
    from = range.end;
  }
  out->append(tool.substr(from));
}

}  // namespace

std::string_view with_session_schemas(std::string_view tools, std::string *room) {
  if (tools.find(schema_name) == std::string_view::npos) return tools;
  const std::string array = "[" + std::string(tools) + "]";
  room->clear();
  room->reserve(tools.size());
  mcp::for_each_item(array, [room](std::string_view tool) {
    if (!room->empty()) *room += ',';
    append_without_schemas(tool, room);
  });
  return room->size() == tools.size() ? tools : std::string_view(*room);
}

}  // namespace bulkhead
