#include "catalog/header_annotations.hpp"

#include "mcp/param_headers.hpp"
#include "mcp/scan.hpp"

namespace bulkhead {

std::optional<std::string> without_invalid_headers(std::string_view tool) {
  constexpr std::string_view name = "x-mcp-header", escape = "\\u";
  constexpr auto none = std::string_view::npos;
  if (tool.find(name) == none && tool.find(escape) == none) return std::nullopt;
  const std::string_view schema = mcp::member(tool, "inputSchema");
  if (schema.empty()) return std::nullopt;
  const auto reduced = mcp::without_invalid_param_headers(schema);
  if (!reduced.has_value()) return std::nullopt;
  const auto at = static_cast<std::size_t>(schema.data() - tool.data());
  return std::string(tool).replace(at, schema.size(), *reduced);
}

}  // namespace bulkhead
