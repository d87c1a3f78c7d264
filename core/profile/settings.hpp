// Reads sections with a fixed set of keys: gateway, naming, expose, limits, isolation, approval,
// pins. Internal to the profile libraries.
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

std::span<const Key<Limits>> limit_keys();

struct Setting {
  std::string_view section, key;
  std::optional<std::string> value;  // in profile syntax; nullopt if not a single value
};
// Returns every key of these sections with its value in the profile.
std::vector<Setting> settings_of(const Profile &profile);

}  // namespace bulkhead::profiles
