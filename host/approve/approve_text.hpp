// Describes a project file's servers for approval. The file's content is untrusted: it is shown
// unchanged, but control and invisible characters are written as \u escapes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "layers/project.hpp"
#include "sources/approval_store.hpp"

namespace bulkhead::program {

// Returns the text as a JSON string in which all hidden characters are escaped.
std::string verbatim(std::string_view text);

enum class ApprovalState : std::uint8_t { none, changed, approved };
ApprovalState approval_state(const ProjectEntry &entry, const Approval *known);
std::string_view to_string(ApprovalState state) noexcept;  // "not approved", "changed since ..."

// Describes one server in several lines. `known` is its earlier approval, or null.
std::string describe_entry(const ProjectEntry &entry, const Approval *known);
// Describes one server as a JSON object. Values of env and headers are masked as in
// approve_value.hpp.
std::string entry_json(const ProjectEntry &entry, const Approval *known);

// The tool names found at the first start, and the findings in the tools' texts ("TOOL: ID").
struct SeenTools {
  std::vector<std::string> names, findings;
};
SeenTools look_at_tools(const std::vector<std::string> &tool_definitions);
std::string describe_tools(const SeenTools &seen);

}  // namespace bulkhead::program
