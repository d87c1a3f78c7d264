// The policies and rules of a profile as a digest that two processes can compare, and the
// difference between two profiles as text.
//
// Rules are not interpreted. A rule is a named table of a section of rules (rule_sections.hpp) in
// any layer; the rest of these sections are settings.
//
// Thread: any.
#pragma once

#include <string>
#include <vector>

#include "profile/profile.hpp"

namespace bulkhead {

// The digest covers which plugins decide, in which order, and their configuration, but not the
// files and lines that it comes from, and not values whose name looks like a credential. Generation
// 1, no change.
PolicyMark first_policy_mark(const std::vector<PluginUse> &policies);

// The mark of the policies that replace `was`: `mark` itself if nothing differs, else the next
// generation. Its `changes` list the differences: "3 rules added", "policies.lists: configuration
// changed".
PolicyMark next_policy_mark(const PolicyMark &mark, const std::vector<PluginUse> &was,
                            const std::vector<PluginUse> &is);

// "3 rules added, 1 rule removed; in force now: 5 rules". Empty for the first generation.
std::string describe_changes(const PolicyMark &mark);

}  // namespace bulkhead
