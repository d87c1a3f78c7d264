// Computes a digest of a profile's policies and rules, and describes the differences between two
// profiles. Processes can compare digests to find out whether they have the same policies and
// rules.
//
// Rules are not interpreted. A rule is a named table in a rule section (rule_sections.hpp) of any
// layer. Everything else in these sections is a setting.
//
// Thread-safe.
#pragma once

#include <string>
#include <vector>

#include "profile/profile.hpp"

namespace bulkhead {

// Returns a mark with generation 1 and no changes. The digest covers the names of the policy
// plugins, their order and their configuration, including credentials, but neither the contents of
// plugin files (unless sha256 pins them) nor the locations of keys. If a policy has keys of its
// own, or a name or value suggests a credential, computing the digest takes several milliseconds
// and 8 MiB of memory, so that a short password cannot be found by trying digests. Throws
// std::bad_alloc.
PolicyMark first_policy_mark(const std::vector<PluginUse> &policies);

// Returns true if a value of a policy's own keys contains "${". It may then be a reference such as
// ${env:TOKEN} that was left unexpanded because its variable is unset (ProfileUse::none), and the
// digest differs from that of a process in which the variable is set.
bool has_unexpanded_reference(const std::vector<PluginUse> &policies);

// Returns the mark for `is`, the policies that replace `was`. If nothing differs, returns `mark`
// unchanged. Otherwise, the returned mark has the next generation, and its `changes` list the
// differences, for example "3 rules added" and "policies.lists: configuration changed".
PolicyMark next_policy_mark(const PolicyMark &mark, const std::vector<PluginUse> &was,
                            const std::vector<PluginUse> &is);

// Returns a summary, for example "3 rules added, 1 rule removed, in force (now 5 rules)". The
// number of rules is omitted if the profile has none and had none. Returns an empty string for the
// first generation.
std::string describe_changes(const PolicyMark &mark);

}  // namespace bulkhead
