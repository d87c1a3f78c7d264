// The state of a server, as reported by `bulkhead status`.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace bulkhead {

// `idle` means that a lazy server is not running. The next call to the server starts it.
enum class ServerState : std::uint8_t { connecting, ready, idle, failed, disabled };
std::string_view to_string(ServerState state) noexcept;

struct ServerStatus {
  std::string name, type;
  std::string protocol;  // the MCP revision of its connection; empty if there is none
  ServerState state = ServerState::connecting;
  // For `failed` and `idle`, the reason for this state. For `connecting`, the reason why the last
  // connection ended. For `disabled`, set only if the server was not disabled by the profile.
  std::string reason;
  std::uint32_t tools = 0, resources = 0, prompts = 0;
  std::uint32_t restarts = 0;
  std::uint64_t in_flight = 0;
  // Connections (for stdio: processes) that are open or being opened. There is one, or one pool,
  // for each set of client capabilities, and for each client that has its own.
  std::uint32_t connections = 0;
  bool requested_roots = false;        // sent roots/list although `roots` is "off"
  std::uint32_t unapproved_tools = 0;  // listed by the server, but not approved
  bool unapproved_hidden = false;      // clients can neither see nor call these tools
};

}  // namespace bulkhead
