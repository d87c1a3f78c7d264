// Sections with rules of policies: [security], [corp], [profiles], [default]. Only policy plugins
// interpret them: they receive the sections of each layer as written, with the places of all keys,
// as the member "profile_rules" of their configuration. Internal to the rooms of profiles.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "profile/sections.hpp"

namespace bulkhead::profiles {

inline constexpr std::string_view kRulesMember = "profile_rules";

std::span<const std::string_view> rule_sections();

// One layer's rules, as a table of its sections.
struct RuleLayer {
  std::uint16_t layer = 0;
  Node sections;
};

// Appends the rule sections of this layer.
void collect_rules(const Node &layer, std::uint16_t index, std::vector<RuleLayer> *out);

// After the plugins are read: adds the rules to the configuration of the policies, except those
// with rules = false in `table`, their section (null: none). An error if no policy receives them.
//
//   "profile_rules": [{"layer": "file", "file": "/etc/b.toml",
//                      "sections": {"security": {"rules": {"mcp": {"x": {"if": "true"}}}}},
//                      "lines": {"security.rules.mcp.x": 3, "security.rules.mcp.x.if": 4}}, ...]
//
// Lowest layer first. Names in the keys of "lines" are in double quotes if they are empty or hold a
// dot, a space or a double quote.
void give_rules(const std::vector<RuleLayer> &rules, const Node *table, Context &context);

}  // namespace bulkhead::profiles
