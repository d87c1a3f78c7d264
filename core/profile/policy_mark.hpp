// A digest of a profile's policies and rules, which two processes can compare, and a text form of
// the differences between two profiles.
//
// Rules are not interpreted. A rule is a named table in a rule section (rule_sections.hpp) of any
// layer; everything else in these sections is a setting.
//
// Thread-safe.
#pragma once

#include <string>
#include <vector>

#include "profile/profile.hpp"

namespace bulkhead {

// The digest covers the policy plugins, their order and their configuration. It does not cover the
// files and lines of the configuration, or values whose name looks like a credential. The returned
// mark has generation 1 and no changes.
PolicyMark first_policy_mark(const std::vector<PluginUse> &policies);

// Returns the mark of the policies that replace `was`: `mark` itself if nothing differs, otherwise
// the next generation. Its `changes` list the differences: "3 rules added", "policies.lists:
// configuration changed".
PolicyMark next_policy_mark(const PolicyMark &mark, const std::vector<PluginUse> &was,
                            const std::vector<PluginUse> &is);

// "3 rules added, 1 rule removed; in force now: 5 rules". Empty for the first generation.
std::string describe_changes(const PolicyMark &mark);

}  // namespace bulkhead
