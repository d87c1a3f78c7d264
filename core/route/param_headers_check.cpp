#include "route/param_headers_check.hpp"

#include "mcp/param_headers.hpp"
#include "route/lane.hpp"

namespace bulkhead {

std::optional<mcp::HeaderFault> check_param_headers(const Message &request, const Target &target,
                                                    const WireHeaders &headers) {
  if (request.scan->method != mcp::Method::tools_call) return std::nullopt;
  const ItemList &tools = target.lane->items(ItemKind::tool);
  if (target.resolved.item >= tools.items.size()) return std::nullopt;
  const std::string_view tool = tools.items[target.resolved.item].raw.in(tools.bytes);
  if (tool.find("x-mcp-header") == std::string_view::npos) return std::nullopt;
  const auto params = mcp::read_param_headers(mcp::member(tool, "inputSchema"));
  if (!params || params->empty()) return std::nullopt;
  return mcp::check_param_headers(*params, request[request.scan->arguments], headers);
}

}  // namespace bulkhead
