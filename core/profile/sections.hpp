// Reads the merged profile, with one reader for each section. Internal to the profile libraries.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "profile/diagnostics.hpp"
#include "profile/layer.hpp"
#include "profile/profile.hpp"
#include "profile/tree.hpp"

namespace bulkhead::profiles {

struct RuleLayer;

// The state of one load.
struct Context {
  const ProfileEnvironment &environment;
  Diagnostics &diagnostics;
  Profile &profile;
  bool literal = false;  // if true, ${...} in server values is literal text
};

// Returns the allowed top-level keys of a layer: sections, and keys outside any section.
std::span<const std::string_view> section_names();
bool known_section(std::string_view name);

// Reads a merged tree into context.profile. `rules` contains the rules of all layers.
void read_profile(const Node &root, const std::vector<RuleLayer> &rules, Context &context);

// Returns the groups of plugin tables: "transports", "tools", "policies", "telemetry", "services".
std::span<const std::string_view> plugin_groups();
// Returns the keys that the host reads in plugin tables, in some groups or in all, except
// kRulesMember. May contain a key twice. All other keys belong to the plugin.
std::vector<std::string_view> plugin_keys();
// Reads the plugin instances of one group. `rules` is true if the profile has rules.
void read_plugins(std::string_view group, const Node &table, bool rules, Context &context);

// Reads the mcpServers section. Must be called after naming, limits, connectors and plugins have
// been read. `tools` is the table of the tools plugins, or null.
void read_servers(const Node &table, const Node *tools, Context &context);

// Returns the reason why the name of a server or plugin instance is invalid, or an empty string if
// it is valid. `builtin_too` permits the name "builtin".
std::string refused_name(std::string_view name, const Naming &naming, bool builtin_too);

// Reads a compartment name into *out: "own", or a shared name that matches [a-z0-9-]{1,32}. Rejects
// "endpoint" and "supervisor".
void read_compartment(const Member &member, const std::string &path, std::string *out,
                      Context &context);

// Resolves a path in the profile. "~/" is the home directory. A relative path is resolved against
// the folder of the file in which it appears.
std::string resolve_path(const std::string &path, const Place &place, const Context &context);

}  // namespace bulkhead::profiles
