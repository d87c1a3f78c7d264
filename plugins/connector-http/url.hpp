// Parses absolute http and https URLs. URLs come from definitions, `endpoint` events and redirects.
// The URLs in events and redirects are sent by the upstream server and are untrusted.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace connector_http {

struct Url {
  bool tls = false;
  std::string host;  // lowercase; IPv6 addresses have no brackets
  std::uint16_t port = 0;
  std::string target;  // path and query; starts with '/'

  // Returns "host" or "host:port" for the Host header. An IPv6 address is in brackets, and the
  // default port is omitted.
  std::string authority() const;
  // Returns "host:port", which is used in messages and as a key.
  std::string host_port() const;
  // Returns "http://host:port" or "https://host:port". The default port is omitted.
  std::string origin() const;
  // Returns origin() and the path. The query is omitted because it may contain a credential.
  std::string shown() const;
  std::string text() const { return origin() + target; }
};

// Parses an absolute URL. Rejects user names, passwords, control characters, spaces, backslashes,
// bytes above 0x7E, and URLs longer than 8 KiB. On failure, *why contains the reason, without the
// URL.
std::optional<Url> parse_url(std::string_view text, std::string *why);

// Resolves a reference (RFC 3986, 5.2) to an http or https URL. The reference may be an absolute
// URL, "//host/..", "/path", "path" or "?query".
std::optional<Url> resolve_url(const Url &base, std::string_view reference, std::string *why);

bool same_origin(const Url &a, const Url &b) noexcept;

// Returns true for "localhost", "*.localhost", 127.0.0.0/8 and ::1. These hosts are never contacted
// through a proxy.
bool is_loopback(std::string_view host) noexcept;

}  // namespace connector_http
