// Parses http and https URLs. Rejects URLs that other parsers might interpret differently, so the
// host that is checked is always the host that is contacted.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "builtin-http/host_name.hpp"

namespace builtin_http {

struct Url {
  std::string scheme;  // "http" or "https"
  HostName host;
  std::uint16_t port = 0;
  std::string target;  // path and query in ASCII, at least "/"; the fragment is dropped

  // Returns the scheme and the host, and the port if it is not the scheme's default port.
  std::string origin() const;
  std::string text() const { return origin() + target; }
};

// Parses a URL in UTF-8. Non-ASCII characters in the path and query are percent-encoded. If the URL
// is missing or invalid, has no host, or is not an http or https URL, returns false and sets
// *problem to an error message for the caller.
bool parse_url(std::string_view text, Url *out, std::string *problem);

// Resolves the value of a Location header against `base` (RFC 3986, 5.2). On failure, returns false
// and sets *problem.
bool resolve_url(const Url &base, std::string_view location, Url *out, std::string *problem);

}  // namespace builtin_http
