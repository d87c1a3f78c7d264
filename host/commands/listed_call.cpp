#include "commands/listed_call.hpp"

#include <algorithm>
#include <optional>

#include "bulkhead/cpp/json.hpp"
#include "bulkhead/cpp/json_writer.hpp"
#include "catalog/names.hpp"
#include "mcp/for_each.hpp"
#include "mcp/scan.hpp"
#include "sources/known_tools.hpp"

namespace bulkhead::program {
namespace {

using bh::json::append_member;
using bh::json::member_text;
using bh::json::Raw;

struct ResolvedTool {
  std::string server, name;
};

// Finds the server to which a listed name belongs. A server whose stored list contains the tool is
// preferred.
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
    return fail(BH_E_INVALID, "no server in the profile has a tool that clients see as " +
                                  shown_name(listed) + "; add \"server\" to the call");
  }
  return fail(BH_E_INVALID, "several servers can have a tool that clients see as " +
                                shown_name(listed) + ": " + shown_name(found[0].server) + ", " +
                                shown_name(found[1].server) + "; add \"server\" to the call");
}

// Returns a copy of the call in which the server and the name are replaced.
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
    notes->push_back(shown_name(name) + " is the name that clients see; rules see server " +
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
  const std::vector<KnownTools> all = known_tools(profile);
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
