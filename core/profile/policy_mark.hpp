// A digest of a profile's policies and rules, and a text that lists the differences between two
// profiles. Two processes can compare their digests.
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

// Returns a mark with generation 1 and no changes. The digest covers the policy plugins, their
// order and their configuration. It does not cover the files and lines of the configuration, or
// values whose names look like a credential.
PolicyMark first_policy_mark(const std::vector<PluginUse> &policies);

// Returns the mark of the policies that replace `was`: `mark` itself if nothing differs, otherwise
// `mark` with the next generation. Its `changes` list the differences: "3 rules added",
// "policies.lists: configuration changed".
PolicyMark next_policy_mark(const PolicyMark &mark, const std::vector<PluginUse> &was,
                            const std::vector<PluginUse> &is);

// Returns a summary such as "3 rules added, 1 rule removed; in force now: 5 rules", or an empty
// string for the first generation.
std::string describe_changes(const PolicyMark &mark);

}  // namespace bulkhead
