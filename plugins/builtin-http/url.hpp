// Parses http and https URLs. Only URLs that all parsers interpret in the same way are accepted, so
// the checked host is always the host that is contacted.
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
  std::string target;  // path and query, ASCII, at least "/"; the fragment is dropped

  // Returns the scheme, the host, and the port unless it is the default of the scheme.
  std::string origin() const;
  std::string text() const { return origin() + target; }
};

// `text` is UTF-8; non-ASCII characters are percent-encoded. Returns false and sets *problem to an
// error message for the caller if the URL is missing or invalid, has no host, or has another
// scheme.
bool parse_url(std::string_view text, Url *out, std::string *problem);

// Resolves a Location header against `base` (RFC 3986, 5.2).
bool resolve_url(const Url &base, std::string_view location, Url *out, std::string *problem);

}  // namespace builtin_http
