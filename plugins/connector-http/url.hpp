// Absolute http and https URLs, from definitions when a lane opens, and from `endpoint` events and
// redirects. The latter are sent by the upstream and are untrusted.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace connector_http {

struct Url {
  bool tls = false;
  std::string host;  // lower case; IPv6 addresses without brackets
  std::uint16_t port = 0;
  std::string target;  // path and query, starts with '/'

  // Returns "host" or "host:port" for a Host header: IPv6 addresses in brackets, without the
  // default port.
  std::string authority() const;
  // Returns "host:port", for messages and as a key.
  std::string host_port() const;
  // Returns "http://host:port" without a default port.
  std::string origin() const;
  // Returns origin() and the path. The query is omitted, because it may contain a credential.
  std::string shown() const;
  std::string text() const { return origin() + target; }
};

// Rejects user names, passwords, control bytes, spaces, bytes above 0x7E, and texts over 8 KiB. On
// failure, *why contains the reason, without the URL.
std::optional<Url> parse_url(std::string_view text, std::string *why);

// Resolves a reference according to RFC 3986 section 5.2 for http and https: an absolute URL,
// "//host/..", "/path", "path", "?query".
std::optional<Url> resolve_url(const Url &base, std::string_view reference, std::string *why);

bool same_origin(const Url &a, const Url &b) noexcept;

// Returns true for "localhost", "*.localhost", 127.0.0.0/8 and ::1. A proxy is never used for these
// hosts.
bool is_loopback(std::string_view host) noexcept;

}  // namespace connector_http
