// The sections with a policy's rules: [security], [corp], [profiles], [default]. What is in them
// means something to the policy plugin alone: each layer's come to it as they were written, with
// the places of all keys, as the member "profile_rules" of its configuration. Internal to
// core/profile.
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

// Appends what this layer, merged with nothing, has of them.
void collect_rules(const Node &layer, std::uint16_t index, std::vector<RuleLayer> *out);

// After the plugins are read: gives the rules to the policies, but those that say rules = false in
// `table`, their section (null: there is none). An error when nobody gets them.
//
//   "profile_rules": [{"layer": "file", "file": "/etc/b.toml",
//                      "sections": {"security": {"rules": {"mcp": {"x": {"if": "true"}}}}},
//                      "lines": {"security.rules.mcp.x": 3, "security.rules.mcp.x.if": 4}}, ...]
//
// Lowest layer first. Names in the keys of "lines" are in double quotes if they are empty or hold a
// dot, a space or a double quote.
void give_rules(const std::vector<RuleLayer> &rules, const Node *table, Context &context);

}  // namespace bulkhead::profiles
