// Sections with rules for policies: [security], [corp], [profiles], [default]. Only policy plugins
// interpret them. They receive the sections of each layer as written, with the locations of all
// keys, in the member "profile_rules" of their configuration. Internal to the profile libraries.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "profile/sections.hpp"

namespace bulkhead::profiles {

inline constexpr std::string_view kRulesMember = "profile_rules";

std::span<const std::string_view> rule_sections();

// The rules of one layer, as a table of its rule sections.
struct RuleLayer {
  std::uint16_t layer = 0;
  Node sections;
};

// Appends the rule sections of `layer`.
void collect_rules(const Node &layer, std::uint16_t index, std::vector<RuleLayer> *out);

// Adds the rules to the configurations of the policies. `table` is the policies section, or null;
// policies that have rules = false in it are skipped. Called after the plugins have been read.
// Reports an error if no policy receives the rules.
//
// "profile_rules": [{"layer": "file", "file": "/etc/b.toml",
//                     "sections": {"security": {"rules": {"mcp": {"x": {"if": "true"}}}}},
//                     "lines": {"security.rules.mcp.x": 3, "security.rules.mcp.x.if": 4}}, ...]
//
// The lowest layer is first. Names in the keys of "lines" are in double quotes if they are empty or
// contain a dot, a space or a double quote.
void give_rules(const std::vector<RuleLayer> &rules, const Node *table, Context &context);

}  // namespace bulkhead::profiles
