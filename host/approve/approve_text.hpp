// Describes the servers in a project file to the user who is about to approve them. The file is
// untrusted: control characters and invisible characters are written as \u escapes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "layers/project.hpp"
#include "sources/approval_store.hpp"

namespace bulkhead::program {

// Returns the text as a JSON string with all hidden characters escaped.
std::string verbatim(std::string_view text);

enum class ApprovalState : std::uint8_t { none, changed, approved };
ApprovalState approval_state(const ProjectEntry &entry, const Approval *known);
std::string_view to_string(ApprovalState state) noexcept;  // for example "not approved"

// Describes a server in several lines. `known` is its previous approval, or null.
std::string describe_entry(const ProjectEntry &entry, const Approval *known);
// Describes a server as a JSON object. Credentials are masked as described in approve_value.hpp.
std::string entry_json(const ProjectEntry &entry, const Approval *known);

// The tools that a server listed when it was started for review. `findings` contains an entry of
// the form "TOOL: ID" for each piece of suspicious text in the tools' definitions.
struct SeenTools {
  std::vector<std::string> names, findings;
};
SeenTools look_at_tools(const std::vector<std::string> &tool_definitions);
std::string describe_tools(const SeenTools &seen);

}  // namespace bulkhead::program
