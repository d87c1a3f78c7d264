#include "sources/known_tools.hpp"

#include "common/text.hpp"
#include "mcp/scan.hpp"
#include "route/kept_list.hpp"

namespace bulkhead::program {
namespace {

std::optional<std::set<std::string>> stored_tools(const ServerDef &def, const Limits &limits) {
  std::optional<std::set<std::string>> out;
  std::string scratch;
  for (const KeptList &kept : def.kept.lists) {
    ListedItems listed;
    if (!read_kept_list(kept.text, def, limits, &listed)) continue;
    if (!out) out.emplace();
    const ItemList &tools = listed.items[static_cast<std::size_t>(ItemKind::tool)];
    for (const ItemList::Item &item : tools.items) {
      out->emplace(mcp::unquote(item.key.in(tools.bytes), &scratch));
    }
  }
  return out;
}

}  // namespace

std::vector<KnownTools> known_tools(const Profile &profile) {
  std::vector<KnownTools> out;
  for (const ServerDef &def : profile.servers) {
    out.push_back({def.name, stored_tools(def, profile.limits)});
  }
  for (const PluginUse &use : profile.tools) out.push_back({use.id, std::nullopt});
  return out;
}

std::optional<std::string> original_name(const KnownTools &server, const Names &names,
                                         std::string_view listed) {
  if (server.tools) {
    for (const std::string &tool : *server.tools) {
      if (names.compose(server.server, tool) == listed) return tool;
    }
  }
  const std::string prefix = server.server + names.naming().separator;
  if (!names.naming().prefix || listed.size() <= prefix.size() || !listed.starts_with(prefix)) {
    return std::nullopt;
  }
  return std::string(listed.substr(prefix.size()));
}

std::string shown_name(std::string_view name) {
  return "\"" + printable(name) + "\"";
}

}  // namespace bulkhead::program
