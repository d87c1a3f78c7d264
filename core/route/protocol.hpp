// MCP definitions that routing needs: revisions, error codes, capabilities and log levels.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "mcp/scan.hpp"

namespace bulkhead {

// The revisions that have a handshake, oldest first. Revisions are compared by their index.
inline constexpr std::array<std::string_view, 4> revisions = {"2024-11-05", "2025-03-26",
                                                              "2025-06-18", "2025-11-25"};
inline constexpr std::uint8_t newest_revision = revisions.size() - 1;
inline constexpr std::uint8_t batch_revision = 1;  // the only revision with JSON-RPC batches

// The revision without sessions: each request states its revision and the client's capabilities.
inline constexpr std::string_view stateless_revision = "2026-07-28";

inline std::optional<std::uint8_t> find_revision(std::string_view text) {
  for (std::size_t i = 0; i < revisions.size(); ++i) {
    if (revisions[i] == text) return static_cast<std::uint8_t>(i);
  }
  return std::nullopt;
}

// Returns a revision as the number that records contain, for example 20251125 for "2025-11-25", or
// 0 if the text does not have this form.
constexpr std::uint32_t revision_number(std::string_view text) noexcept {
  if (text.size() != stateless_revision.size()) return 0;
  std::uint32_t out = 0;
  for (const char c : text) {
    if (c == '-') continue;
    if (c < '0' || c > '9') return 0;
    out = out * 10 + static_cast<std::uint32_t>(c - '0');
  }
  return out;
}

// The error message for an invalid progress token. Its code is code::invalid_params.
inline constexpr const char *bad_progress_token =
    "params._meta.progressToken must be a string or an integer of at most 256 bytes";

// JSON-RPC 2.0 and MCP error codes.
namespace code {
inline constexpr std::int32_t parse_error = -32700;
inline constexpr std::int32_t invalid_request = -32600;  // also for requests refused by policy
inline constexpr std::int32_t method_not_found = -32601;
inline constexpr std::int32_t invalid_params = -32602;
inline constexpr std::int32_t internal_error = -32603;  // also for failures of the server
inline constexpr std::int32_t timeout = -32000;         // also for exceeded limits
inline constexpr std::int32_t resource_not_found = -32002;
inline constexpr std::int32_t urls_required = -32042;  // sent by servers with sessions
inline constexpr std::int32_t user_rejected = -1;      // for sampling
// 2026-07-28 only.
inline constexpr std::int32_t missing_capability = -32021;
inline constexpr std::int32_t unsupported_revision = -32022;
// In revision 2026-07-28, the codes from this one to -32000 have no meaning unless the revision
// itself defines them.
inline constexpr std::int32_t first_reserved = -32099;
}  // namespace code

// Client capabilities. The gateway declares its capabilities to servers with the same bits.
using ClientCaps = std::uint32_t;
namespace cap {
inline constexpr ClientCaps roots = 1;
inline constexpr ClientCaps roots_changed = 2;
inline constexpr ClientCaps sampling = 4;
inline constexpr ClientCaps sampling_tools = 8;
inline constexpr ClientCaps sampling_context = 16;
inline constexpr ClientCaps elicitation = 32;
inline constexpr ClientCaps elicitation_form = 64;
inline constexpr ClientCaps elicitation_url = 128;
// The extension io.modelcontextprotocol/tasks. Declared only in requests of MCP 2026-07-28.
inline constexpr ClientCaps tasks = 256;
// The capabilities that clients must have in common to share a view. Roots are not included,
// because in a shared view, the server's definition determines whether roots are declared, not the
// clients (see Upstream::lane_for).
inline constexpr ClientCaps shareable =
    sampling | sampling_tools | sampling_context | elicitation | elicitation_form | elicitation_url;
}  // namespace cap

// Convert between capability bits and a client's `capabilities` JSON object. The text to parse must
// be valid JSON. parse_client_caps() never sets cap::tasks; see declares_tasks().
ClientCaps parse_client_caps(std::string_view capabilities);
std::string compose_client_caps(ClientCaps caps);

// Composes the result of roots/list for these absolute paths. Each root is a file:// URI and is
// named after the last folder in its path.
std::string compose_roots(const std::vector<std::string> &folders);

struct ServerCaps {
  bool tools = false, resources = false, subscribe = false, prompts = false, logging = false,
       completions = false;
  // The following members are not stored when the server's lists are stored. They state whether the
  // server reports changes to these lists, and (2025-11-25 only) whether it can run tools/call as a
  // task and supports tasks/cancel.
  bool tools_changed = false, resources_changed = false, prompts_changed = false;
  bool tool_tasks = false, task_cancel = false;
  bool asks_input = false;  // a tools plugin with BH_TOOLS_ASKS_INPUT
};
ServerCaps parse_server_caps(std::string_view capabilities);
std::string compose_server_caps(const ServerCaps &caps);

// Composes a notifications/cancelled message for request `id` (digits) from a cancellation that a
// peer has sent. The peer's reason is kept if it is a string. All other params are dropped, because
// no rule evaluates them. The peer's message must be valid JSON.
std::string compose_cancelled(std::string_view id, std::string_view message, const mcp::Scan &scan);

// Maximum length of a server's instructions. Longer instructions are truncated.
inline constexpr std::size_t max_instructions_bytes = 8192;

// Convert between the level names of RFC 5424 and numbers, in which 0 is the least urgent level.
// parse_log_level() returns -1 if the text is not a level name.
int parse_log_level(std::string_view text);
std::string_view log_level_text(int level);

}  // namespace bulkhead
