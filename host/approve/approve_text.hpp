// What a person sees before saying yes to a server of a project file. Everything in it is
// untrusted: it is shown as it is, with what a terminal would obey or hide written as \u escapes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "layers/project.hpp"
#include "sources/approval_store.hpp"

namespace bulkhead::program {

// A JSON string: words end where they seem to, and every hidden character is visible.
std::string verbatim(std::string_view text);

enum class ApprovalState : std::uint8_t { none, changed, approved };
ApprovalState approval_state(const ProjectEntry &entry, const Approval *known);
std::string_view to_string(ApprovalState state) noexcept;  // "not approved", "changed since ..."

// Lines about one server. `known`: what was approved of it before, or null.
std::string describe_entry(const ProjectEntry &entry, const Approval *known);
// The same as one JSON object; env and headers are masked where approve_value.hpp says so.
std::string entry_json(const ProjectEntry &entry, const Approval *known);

// One tool for the list after the first start, and what its texts try ("TOOL: ID").
struct SeenTools {
  std::vector<std::string> names, findings;
};
SeenTools look_at_tools(const std::vector<std::string> &tool_definitions);
std::string describe_tools(const SeenTools &seen);

}  // namespace bulkhead::program
