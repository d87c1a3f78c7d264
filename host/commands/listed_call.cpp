#include "commands/listed_call.hpp"

#include <algorithm>
#include <optional>
#include <set>

#include "bulkhead/cpp/json.hpp"
#include "bulkhead/cpp/json_writer.hpp"
#include "catalog/names.hpp"
#include "common/text.hpp"
#include "mcp/for_each.hpp"
#include "mcp/scan.hpp"
#include "route/kept_list.hpp"

namespace bulkhead::program {
namespace {

using bh::json::append_member;
using bh::json::member_text;
using bh::json::Raw;

std::string shown_name(std::string_view text) {
  return "\"" + printable(text) + "\"";
}

// A server of the profile, or the id of a tools plugin, whose tools are not stored.
struct KnownTools {
  std::string server;
  std::optional<std::set<std::string>> tools;  // original names; nullopt if no list is stored

  bool lists(std::string_view tool) const {
    return tools.has_value() && tools->contains(std::string(tool));
  }
};

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

std::vector<KnownTools> listings_of(const Profile &profile) {
  std::vector<KnownTools> out;
  for (const ServerDef &def : profile.servers) {
    out.push_back({def.name, stored_tools(def, profile.limits)});
  }
  for (const PluginUse &use : profile.tools) out.push_back({use.id, std::nullopt});
  return out;
}

// Returns the original name if this server can have a tool with the listed name. Without a stored
// list, a shortened name cannot be resolved.
std::optional<std::string> original_name(const KnownTools &listing, const Names &names,
                                         std::string_view listed) {
  if (listing.tools) {
    for (const std::string &tool : *listing.tools) {
      if (names.compose(listing.server, tool) == listed) return tool;
    }
  }
  const std::string prefix = listing.server + names.naming().separator;
  if (!names.naming().prefix || listed.size() <= prefix.size() || !listed.starts_with(prefix)) {
    return std::nullopt;
  }
  return std::string(listed.substr(prefix.size()));
}

struct ResolvedTool {
  std::string server, name;
};

// Finds the server of a listed name. A server that lists the tool is preferred.
Result<ResolvedTool> find_listing_server(const std::vector<KnownTools> &all, const Names &names,
                                         std::string_view listed) {
  std::vector<ResolvedTool> listing_it, possible;
  for (const KnownTools &one : all) {
    const auto name = original_name(one, names, listed);
    if (!name) continue;
    (one.lists(*name) ? listing_it : possible).push_back({one.server, *name});
  }
  const auto &found = listing_it.empty() ? possible : listing_it;
  if (found.size() == 1) return found.front();
  if (found.empty()) {
    return fail(BH_E_INVALID, "no server in the profile has a tool with the listed name " +
                                  shown_name(listed) + "; add \"server\" to the call");
  }
  return fail(BH_E_INVALID, "several servers can have a tool with the listed name " +
                                shown_name(listed) + ": " + shown_name(found[0].server) + ", " +
                                shown_name(found[1].server) + "; add \"server\" to the call");
}

// Copies the call with this server and name.
std::string with_names(std::string_view call, const ResolvedTool &to) {
  std::string out = "{", scratch;
  append_member(&out, "server", to.server);
  append_member(&out, "name", to.name);
  mcp::for_each_member(call, [&](std::string_view key, std::string_view value) {
    const std::string_view plain = mcp::unquote(key, &scratch);
    if (plain != "server" && plain != "name") append_member(&out, plain, Raw{value});
  });
  return out + "}";
}

bool is_tool_call(std::string_view call) {
  const std::string on = member_text(call, "on"), method = member_text(call, "method");
  return (on.empty() || on == "mcp.request") && (method.empty() || method == "tools/call") &&
         mcp::member(call, "name").starts_with('"');
}

// Resolves the name in a call whose server is known.
ResolvedTool resolve_in(const KnownTools &listing, const Names &names, std::string_view name,
                        std::vector<std::string> *notes) {
  ResolvedTool out{listing.server, std::string(name)};
  if (listing.lists(name)) return out;
  if (const auto original = original_name(listing, names, names.aliased(name))) {
    out.name = *original;
    notes->push_back(shown_name(name) + " is a listed name; rules see server " +
                     shown_name(out.server) + ", tool " + shown_name(out.name));
  }
  if (listing.tools && !listing.lists(out.name)) {
    notes->push_back("server " + shown_name(out.server) + " lists no tool " + shown_name(out.name));
  }
  return out;
}

}  // namespace

Result<ListedCall> resolve_listed_call(std::string_view call, const Profile &profile) {
  ListedCall out;
  const std::size_t first = call.find_first_not_of(" \t\r\n");
  const std::string_view object = first == call.npos ? call : call.substr(first);
  out.call = object;
  if (!object.starts_with('{') || !mcp::valid_json(object) || !is_tool_call(object)) return out;
  const std::vector<KnownTools> all = listings_of(profile);
  const Names names(profile.naming);
  const std::string name = member_text(object, "name");
  std::string server = member_text(object, "server");
  if (server.empty()) {
    auto found = find_listing_server(all, names, names.aliased(name));
    if (!found) return std::unexpected(found.error());
    server = found->server;
  }
  const auto at = std::find_if(all.begin(), all.end(),
                               [&](const KnownTools &one) { return one.server == server; });
  if (at == all.end()) {
    out.notes.push_back("the profile has no server " + shown_name(server));
    return out;
  }
  const ResolvedTool to = resolve_in(*at, names, name, &out.notes);
  if (to.name != name || mcp::member(object, "server").empty()) out.call = with_names(object, to);
  return out;
}

}  // namespace bulkhead::program
