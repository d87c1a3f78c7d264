#include "route/request_headers.hpp"

#include <utility>

namespace bulkhead {

void RequestHeaders::use_tools(ItemList *tools,
                               const std::function<void(const std::string &text)> &on_removed) {
  tools_.clear();
  std::string scratch;
  remove_items(tools, [&](const ItemList::Item &item) {
    const std::string_view schema = mcp::member(item.raw.in(tools->bytes), "inputSchema");
    if (schema.empty()) return false;
    auto params = mcp::read_param_headers(schema);
    const std::string name(mcp::unquote(item.key.in(tools->bytes), &scratch));
    if (!params) {
      on_removed("tool \"" + name.substr(0, 100) + "\" is not offered: " + params.error().text);
      return true;
    }
    if (!params->empty()) tools_.insert_or_assign(name, *std::move(params));
    return false;
  });
}

Result<std::span<const bh_header>> RequestHeaders::of(std::string_view revision,
                                                      const Values &values) {
  const bool named =
      values.method == mcp::Method::tools_call || values.method == mcp::Method::prompts_get ||
      values.method == mcp::Method::resources_read || values.method == mcp::Method::tasks_get ||
      values.method == mcp::Method::tasks_update || values.method == mcp::Method::tasks_cancel;
  list_.clear();
  mcp::MirroredValues mirrored;
  mirrored.revision = revision;
  mirrored.method = values.method_text;
  if (named) mirrored.name = values.name;
  mcp::add_mirrored_headers(mirrored, &list_);
  if (values.method == mcp::Method::tools_call && !tools_.empty()) {
    const auto at = tools_.find(values.name);
    if (at != tools_.end()) {
      const auto fault = mcp::add_param_headers(at->second, values.arguments, &list_);
      if (fault.has_value()) return fail(BH_E_INVALID, fault->header + ": " + fault->text);
    }
  }
  return list_.all();
}

}  // namespace bulkhead
