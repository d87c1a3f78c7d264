// Parses the plugin's configuration and its listening address.
#pragma once

#include <sys/socket.h>

#include <string>
#include <string_view>

#include "bulkhead/abi/core.h"
#include "guard.hpp"

namespace transport_http {

struct Config {
  std::string listen = "127.0.0.1:8808";  // host:port, [v6]:port or unix:/path
  std::string path = "/mcp";
  std::string sse_path = "/sse";         // path of HTTP+SSE; if empty, HTTP+SSE is disabled
  std::string message_path;              // sibling of sse_path, such as "/messages"
  std::uint64_t keep_alive_ms = 25'000;  // interval of keep-alive comments on an idle event stream
  GuardConfig guard;                     // its token may still be "auto"
};

inline constexpr char config_schema[] = R"({
  "type": "object",
  "additionalProperties": false,
  "properties": {
    "listen": {"type": "string",
      "description": "an address: 127.0.0.1:8808, [::1]:8808, 0.0.0.0:8808 or unix:/path/to/socket",
      "pattern": "^(unix:.+|localhost:[0-9]+|[0-9]+[.][0-9.]+:[0-9]+|\\[[0-9a-fA-F:.]+\\]:[0-9]+)$"},
    "path": {"type": "string"},
    "sse_path": {"type": "string"},
    "allowed_hosts": {"type": "array", "items": {"type": "string"}},
    "allowed_origins": {"type": "array", "items": {"type": "string"}},
    "token": {"type": "string"},
    "keep_alive_ms": {"type": "integer", "minimum": 100}
  }
})";

// Parses the configuration, a JSON object. All errors are reported in one message. Thread:
// [control] in bulkhead/abi/core.h.
bh_status parse_config(std::string_view json, Config &out, bh_error *error);

struct ListenAddress {
  sockaddr_storage address{};
  socklen_t size = 0;
  bool loopback = false;  // only this machine can connect; true for a Unix socket
  std::string unix_path;  // empty unless this is a Unix socket

  // Parses the value of `listen`. If it is invalid, returns BH_E_INVALID and an error that lists
  // the allowed forms.
  static bh_status parse(std::string_view text, ListenAddress &out, bh_error *error);
};

// Returns the address in the form "127.0.0.1:4711", "[::1]:4711" or "unix".
std::string to_text(const sockaddr_storage &address);
// Returns the address of a connection's other side: like to_text(), or "uid:1000 pid:4711" for a
// Unix socket. The process is the one that connected.
std::string peer_text(int fd, const sockaddr_storage &address);
// Returns a binary key that identifies the owner of a connection, so that capacity can be shared
// fairly: the IPv4 address without the port, the IPv6 /64 network, or the user of a Unix socket.
// All loopback addresses have the same key.
std::string peer_key(int fd, const sockaddr_storage &address);
std::uint16_t port_of(const sockaddr_storage &address) noexcept;

}  // namespace transport_http
