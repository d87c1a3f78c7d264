// Approval questions as MCP elicitation forms, and the answers to them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "mcp/scan.hpp"
#include "route/approval.hpp"
#include "route/protocol.hpp"

namespace bulkhead {

// The first revision that has elicitation, and the first whose requests name a mode.
inline constexpr std::uint8_t elicitation_revision = 2, elicitation_mode_revision = 3;

// A client of this revision with these capabilities can show a form.
bool shows_forms(std::uint8_t revision, ClientCaps caps) noexcept;

// Composes the elicitation/create request with this id: a form with a decision (allow, deny) and an
// optional scope (once, session).
std::string approval_form(std::uint64_t id, const ApprovalQuestion &question,
                          std::uint64_t timeout_ms, std::uint8_t revision);

struct FormAnswer {
  bool shown = true;  // false: the client could not show it (it answered with an error)
  bool allow = false;
  ApprovalScope scope;
};
// An answer other than "allow" denies; an unknown scope is "once".
FormAnswer read_approval_form(std::string_view message, const mcp::Scan &scan);

}  // namespace bulkhead
