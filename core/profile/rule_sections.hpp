// Collects the rule sections for policies: [security], [corp], [profiles], [default]. Only policy
// plugins interpret them. A policy plugin receives the sections of each layer as written, with the
// locations of all keys, in the member "profile_rules" of its configuration. Internal to the
// profile libraries.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "profile/sections.hpp"

namespace bulkhead::profiles {

inline constexpr std::string_view kRulesMember = "profile_rules";

std::span<const std::string_view> rule_sections();

// The rule sections of one layer. `sections` is a table.
struct RuleLayer {
  std::uint16_t layer = 0;
  Node sections;
};

// Appends the rule sections of `layer` to *out.
void collect_rules(const Node &layer, std::uint16_t index, std::vector<RuleLayer> *out);

// Adds the rules to the configurations of the policies. `table` is the policies section, or null.
// Policies with rules = false in that section do not receive rules. Reports an error if no policy
// receives the rules. Must be called after the plugins have been read.
//
// "profile_rules": [{"layer": "file", "file": "/etc/b.toml",
//                     "sections": {"security": {"rules": {"mcp": {"x": {"if": "true"}}}}},
//                     "lines": {"security.rules.mcp.x": 3, "security.rules.mcp.x.if": 4}}, ...]
//
// The lowest layer is first. In the keys of "lines", names are formatted by join(): a name is in
// double quotes if it is empty or contains a dot, a space or a double quote, and ASCII control
// characters become '?'. Long names are not truncated.
void give_rules(const std::vector<RuleLayer> &rules, const Node *table, Context &context);

}  // namespace bulkhead::profiles
