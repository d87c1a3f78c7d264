// Reads sections with a fixed set of keys: gateway, naming, expose, limits, isolation, approval,
// pins, plugin_trust. Internal to the profile libraries.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "profile/keys.hpp"

namespace bulkhead::profiles {

void read_gateway(const Node &table, Context &context);
void read_naming(const Node &table, Context &context);
void read_expose(const Node &table, Context &context);
void read_limits(const Node &table, Context &context);
void read_isolation(const Node &table, Context &context);
void read_approval(const Node &table, Context &context);
void read_pins(const Node &table, Context &context);
void read_plugin_trust(const Node &table, Context &context);

std::span<const Key<PluginTrust>> plugin_trust_keys();

// Adds the revocations of the lower layers to those of a layer that is about to be merged over
// them, so that no layer can remove a revocation. `below` contains the merged lower layers.
void keep_revocations(const Node &below, Node *layer);

std::span<const Key<Limits>> limit_keys();

struct Setting {
  std::string_view section, key;
  std::optional<std::string> value;  // in profile syntax; nullopt if not a single value
};
// Returns every key of these sections with its value in the profile.
std::vector<Setting> settings_of(const Profile &profile);

}  // namespace bulkhead::profiles
