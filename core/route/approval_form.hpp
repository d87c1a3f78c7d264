// Composes approval questions as MCP elicitation forms, and reads the answers.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "mcp/scan.hpp"
#include "route/approval.hpp"
#include "route/protocol.hpp"

namespace bulkhead {

// The first revision with elicitation, and the first revision whose elicitation requests specify a
// mode (indexes of `revisions`).
inline constexpr std::uint8_t elicitation_revision = 2, elicitation_mode_revision = 3;

// Returns true if a client of this revision with these capabilities can display a form.
bool shows_forms(std::uint8_t revision, ClientCaps caps) noexcept;

// Composes the params of elicitation/create: a form with a decision (allow, deny) and, if the
// client has a session, an optional scope (once, session).
std::string approval_form(const ApprovalQuestion &question, std::uint64_t timeout_ms,
                          std::uint8_t revision);

struct FormAnswer {
  // False if the client answered with an error, so it did not display the form.
  bool shown = true;
  bool allow = false;
  ApprovalScope scope;
};
// Any result that does not accept the form with the decision "allow" denies the call. An unknown
// scope is treated as "once".
FormAnswer read_approval_form(std::string_view message, const mcp::Scan &scan);

}  // namespace bulkhead
