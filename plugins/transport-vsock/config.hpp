// Parses the plugin's configuration and its addresses.
#pragma once

#include <bulkhead/abi/core.h>

#include <sys/socket.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace transport_vsock {

struct Address {
  sockaddr_storage raw{};
  socklen_t size = 0;
  std::uint32_t guest_port = 0;  // the port in the guest; only for "hybrid:"
};

struct Config {
  std::string listen;  // vsock:PORT, vsock:CID:PORT, unix:PATH or hybrid:PATH:PORT; may be empty
  std::string dial;    // hybrid:PATH:PORT of a guest to connect to; may be empty
  // Where to hand off connections that are not MCP: unix:PATH or a loopback IP:PORT. If empty,
  // these connections are closed.
  std::string handoff;
  // The peers that may connect over vsock (context IDs) and over a Unix socket (user IDs). Without
  // a list, all vsock peers and the users with access to the socket file (root and this user) may
  // connect. If a list is empty, no peer may connect.
  std::optional<std::vector<std::uint32_t>> allow_cids, allow_uids;
  std::vector<std::string> metadata_prefixes;  // in addition to mcp_frame::known_prefixes
  // If this is not empty, the clients are not guests but programs that this user runs on this
  // machine. Each connection must begin with a metadata line that has this prefix, followed by
  // frames; other connections are closed. The session is like that of a client on standard input:
  // its transport is "stdio", it has no address, the handshake is required, and the maximum message
  // size is limits.message_bytes.
  std::string local_token;
  std::uint64_t sniff_timeout_ms = 5'000;
  std::uint64_t write_timeout_ms = 0;  // if 0, the host's limits.write_stall_ms
  std::uint64_t max_connections = 1'024;
  std::uint64_t max_connections_per_peer = 256;  // a peer is a context ID or a user ID
};

inline constexpr char config_schema[] = R"({
  "type": "object",
  "additionalProperties": false,
  "properties": {
    "listen": {"type": "string"},
    "dial": {"type": "string"},
    "handoff": {"type": "string"},
    "allow_cids": {"type": "array", "items": {"type": "integer", "minimum": 0}},
    "allow_uids": {"type": "array", "items": {"type": "integer", "minimum": 0}},
    "metadata_prefixes": {"type": "array", "items": {"type": "string"}},
    "local_token": {"type": "string"},
    "sniff_timeout_ms": {"type": "integer", "minimum": 10},
    "write_timeout_ms": {"type": "integer", "minimum": 10},
    "max_connections": {"type": "integer", "minimum": 1},
    "max_connections_per_peer": {"type": "integer", "minimum": 1}
  }
})";

// Parses the configuration, a JSON object. All errors are reported in one message. Without `listen`
// and `dial`, the plugin listens on vsock:5002. Thread: [control] in bulkhead/abi/core.h.
bh_status parse_config(std::string_view json, Config *out, bh_error *error);

// These functions parse the values of Config::listen, dial and handoff. They return false if the
// text does not have one of the forms that Config lists.
bool parse_listen(std::string_view text, Address *out);
bool parse_dial(std::string_view text, Address *out);
bool parse_handoff(std::string_view text, Address *out);

inline constexpr std::uint32_t unknown_id = UINT32_MAX;

// Returns "cid:3" for a vsock peer or "uid:1000" for a peer on a Unix socket, and sets *id to the
// number. The kernel maps users from outside the user namespace to 65534. For them, and if the
// credentials cannot be read, the result is "uid:unknown", and *id is set to unknown_id.
std::string peer_name(int fd, const sockaddr_storage &peer, std::uint32_t *id);

}  // namespace transport_vsock
