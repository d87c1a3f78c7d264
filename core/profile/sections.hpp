// Reads the sections of a merged profile, using one reader per section. Internal to the profile
// libraries.
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
  bool literal = false;  // ${...} in server values is literal text
};

// The top-level keys of a canonical layer: sections, and keys outside any section.
std::span<const std::string_view> section_names();
bool known_section(std::string_view name);

// Reads a merged tree into context.profile. `rules` contains the rules of all layers.
void read_profile(const Node &root, const std::vector<RuleLayer> &rules, Context &context);

// The groups of plugin tables: "transports", "tools", "policies", "telemetry", "services".
std::span<const std::string_view> plugin_groups();
// Returns the keys in these tables that the host reads. All other keys belong to the plugin.
std::vector<std::string_view> plugin_keys();
// `rules` is true if the profile has rules.
void read_plugins(std::string_view group, const Node &table, bool rules, Context &context);

// Called after naming, limits, connectors and plugins have been read. `tools` is the tools plugins
// table, or null.
void read_servers(const Node &table, const Node *tools, Context &context);

// Returns the reason why a name is invalid for a server, or an empty string. `builtin_too` permits
// "builtin".
std::string refused_name(std::string_view name, const Naming &naming, bool builtin_too);

// Reads "own" or a shared name of [a-z0-9-]{1,32}, except "endpoint" and "supervisor".
void read_compartment(const Member &member, const std::string &path, std::string *out,
                      Context &context);

// Resolves a path in the profile. "~/" is the home folder; a relative path starts at the folder of
// the file that contains it.
std::string resolve_path(const std::string &path, const Place &place, const Context &context);

}  // namespace bulkhead::profiles
