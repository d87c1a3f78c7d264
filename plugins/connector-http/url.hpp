// Absolute http and https URLs. They are parsed when a lane opens, and for `endpoint` events and
// redirects, which come from the upstream and are untrusted.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace connector_http {

struct Url {
  bool tls = false;
  std::string host;  // lower case; an IPv6 address is without brackets
  std::uint16_t port = 0;
  std::string target;  // path and query, starts with '/'

  // Returns "host" or "host:port" for a Host header (with brackets, without the default port).
  std::string authority() const;
  // Returns "host:port", for messages and as a key.
  std::string host_port() const;
  // Returns "http://host:port"; the port is omitted if it is the default.
  std::string origin() const;
  // Returns origin() and the path, without the query, which may contain a credential.
  std::string shown() const;
  std::string text() const { return origin() + target; }
};

// Rejects user names, passwords, control bytes, spaces and bytes above 0x7E. At most 8 KiB. On
// failure *why contains the reason, without the URL.
std::optional<Url> parse_url(std::string_view text, std::string *why);

// Resolves a reference by RFC 3986 section 5.2 for http and https: an absolute URL, "//host/..",
// "/path", "path", "?query".
std::optional<Url> resolve_url(const Url &base, std::string_view reference, std::string *why);

bool same_origin(const Url &a, const Url &b) noexcept;

// Returns true for "localhost", "*.localhost", 127.0.0.0/8 and ::1, which never use a proxy.
bool is_loopback(std::string_view host) noexcept;

}  // namespace connector_http
