// Reads the mcpServers section: checks names and resolves conflicts with tools plugins.
#include <string_view>
#include <unordered_map>

#include "profile/server.hpp"

namespace bulkhead::profiles {

namespace {

using Places = std::unordered_map<std::string_view, Place>;

// Returns the locations of the enabled tools plugins.
Places places_of(const Node *tools, const Profile &profile) {
  Places all, out;
  if (tools != nullptr)
    for (const Member &member : tools->members) all.emplace(member.name, member.place);
  for (const PluginUse &use : profile.tools) out.emplace(all.find(use.id)->first, all[use.id]);
  return out;
}

// Resolves a conflict between a server and a tools plugin with the same name. A server in a higher
// layer replaces the tools plugin. Otherwise, the conflict is an error, or a note if the server is
// in a lenient layer below the plugin's layer. Returns false if the server must be skipped.
bool resolve_tools_conflict(const Member &entry, const Places &tools, Context &context) {
  const auto found = tools.find(entry.name);
  if (found == tools.end()) return true;
  const Place &place = found->second;
  if (place.layer > entry.place.layer && context.diagnostics.lenient(entry.place)) {
    context.diagnostics.note(entry.place, "server " + in_quotes(entry.name) +
                                              " is skipped: a tools plugin has the same name");
    return false;
  }
  if (place.layer >= entry.place.layer) {
    context.diagnostics.error(entry.place, join("mcpServers", entry.name),
                              "a tools plugin has the same name (line " +
                                  std::to_string(place.line) + " of " +
                                  in_quotes(context.diagnostics.origin(place).layer) + ")");
    return false;
  }
  context.diagnostics.note(
      entry.place, "server " + in_quotes(entry.name) + " replaces the tools plugin of that name");
  std::erase_if(context.profile.tools, [&](const PluginUse &use) { return use.id == entry.name; });
  return true;
}

// Lists an invalid server from a lenient layer as disabled, with the error as the reason.
void add_invalid(const Member &entry, std::string_view what, Context &context) {
  Diagnostics &diagnostics = context.diagnostics;
  ServerDef server;
  server.name = entry.name;
  server.type = listed_type(entry.value);
  server.disabled = true;
  server.origin = diagnostics.origin(entry.place);
  server.disabled_reason = std::string(kWrongDefinition) + printable(what, 1000);
  diagnostics.note(entry.place,
                   "server " + in_quotes(entry.name) + " is disabled: " + server.disabled_reason);
  context.profile.servers.push_back(std::move(server));
}

void read_entry(const Member &entry, Context &context) {
  Diagnostics &diagnostics = context.diagnostics;
  const std::size_t before = diagnostics.count();
  read_server(entry, context);
  if (diagnostics.count() > before && diagnostics.lenient(entry.place))
    add_invalid(entry, diagnostics.retract_errors(before), context);
}

}  // namespace

std::string listed_type(const Node &server) {
  for (const Member &member : server.members)
    if (server_key(member.name) == "url") return "http";
  return "stdio";
}

void read_servers(const Node &table, const Node *tools, Context &context) {
  Diagnostics &diagnostics = context.diagnostics;
  if (!diagnostics.is_table(table, "mcpServers")) return;
  const Naming &naming = context.profile.naming;
  const Places running = places_of(tools, context.profile);
  for (const Member &entry : table.members) {
    const std::string why = refused_name(entry.name, naming, false);
    if (why.empty()) {
      if (resolve_tools_conflict(entry, running, context)) read_entry(entry, context);
    } else if (naming.bad_names_error && !diagnostics.lenient(entry.place)) {
      diagnostics.error(entry.place, join("mcpServers", entry.name),
                        "the server is invalid: " + why);
    } else {
      diagnostics.note(entry.place, "server " + in_quotes(entry.name) + " is skipped: " + why);
    }
  }
}

}  // namespace bulkhead::profiles
