// The section mcpServers as a whole: names, and what else has them.
#include <algorithm>

#include "profile/server.hpp"

namespace bulkhead::profiles {

namespace {

// A server takes the place of a tools plugin of the same name that a lower layer has; two of one
// layer cannot both be meant.
bool settle_with_tools(const Member &entry, const Node *tools, Context &context) {
  auto &uses = context.profile.tools;
  const auto use = std::find_if(uses.begin(), uses.end(),
                                [&](const PluginUse &u) { return u.id == entry.name; });
  if (use == uses.end()) return true;
  const auto instance = std::find_if(tools->members.begin(), tools->members.end(),
                                     [&](const Member &m) { return m.name == entry.name; });
  if (instance->place.layer >= entry.place.layer) {
    context.diagnostics.error(entry.place, join("mcpServers", entry.name),
                              "a tools plugin has the same name (line " +
                                  std::to_string(instance->place.line) + " of " +
                                  in_quotes(use->origin.layer) + ")");
    return false;
  }
  context.diagnostics.note(entry.place, "server " + in_quotes(entry.name) +
                                            " takes the place of the tools plugin of that name");
  uses.erase(use);
  return true;
}

}  // namespace

void read_servers(const Node &table, const Node *tools, Context &context) {
  Diagnostics &diagnostics = context.diagnostics;
  if (!diagnostics.is_table(table, "mcpServers")) return;
  const Naming &naming = context.profile.naming;
  for (const Member &entry : table.members) {
    const std::string why = refused_name(entry.name, naming, false);
    if (why.empty()) {
      if (settle_with_tools(entry, tools, context)) read_server(entry, context);
    } else if (naming.bad_names_error) {
      diagnostics.error(entry.place, join("mcpServers", entry.name),
                        "the server is refused: " + why);
    } else {
      diagnostics.note(entry.place, "server " + in_quotes(entry.name) + " is left out: " + why);
    }
  }
}

}  // namespace bulkhead::profiles
