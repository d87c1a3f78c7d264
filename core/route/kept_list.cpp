#include "route/kept_list.hpp"

#include "bulkhead/cpp/json_writer.hpp"

namespace bulkhead {

std::string kept_list_text(const ServerCaps &caps, const std::string &instructions,
                           const std::array<ItemList, item_kinds> &items) {
  std::size_t bytes = instructions.size();
  for (const ItemList &list : items) bytes += list.bytes.size() + list.items.size();
  if (bytes > max_kept_list_bytes) return {};
  std::string out = R"({"capabilities":)" + compose_server_caps(caps) + R"(,"instructions":)";
  bh::json::append_quoted(&out, instructions);
  for (const ItemKind kind : all_item_kinds) {
    const ItemList &list = items[static_cast<std::size_t>(kind)];
    out.append(",\"").append(facts(kind).member).append("\":[");
    for (const ItemList::Item &item : list.items) {
      if (out.back() != '[') out += ',';
      out.append(item.raw.in(list.bytes));
    }
    out += ']';
  }
  out += '}';
  return out.size() > max_kept_list_bytes ? std::string() : out;
}

bool read_kept_list(std::string_view text, const ServerDef &definition, const Limits &limits,
                    ListedItems *out) {
  if (text.size() > max_kept_list_bytes || !text.starts_with('{') || !mcp::valid_json(text)) {
    return false;
  }
  const std::string_view caps = mcp::member(text, "capabilities");
  if (!caps.starts_with('{')) return false;
  out->caps = parse_server_caps(caps);
  std::string scratch;
  const std::string_view instructions = mcp::member(text, "instructions");
  out->instructions = instructions.starts_with('"')
                          ? mcp::unquote(instructions, &scratch).substr(0, max_instructions_bytes)
                          : std::string_view();
  for (const ItemKind kind : all_item_kinds) {
    ItemList &list = out->items[static_cast<std::size_t>(kind)];
    if (!append_page(kind, text, definition, limits, &list)) return false;
  }
  return true;
}

}  // namespace bulkhead
