// Parses http and https URLs. Only URLs that all parsers interpret equally are accepted, so that
// the checked host is the contacted host.
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

  // Scheme, host, and a port other than the scheme's default.
  std::string origin() const;
  std::string text() const { return origin() + target; }
};

// text: UTF-8; non-ASCII characters are percent-encoded. False: *problem is a sentence for the
// caller: the URL is missing, invalid, has another scheme, or has no host.
bool parse_url(std::string_view text, Url *out, std::string *problem);

// Resolves a Location header against base (RFC 3986, 5.2).
bool resolve_url(const Url &base, std::string_view location, Url *out, std::string *problem);

}  // namespace builtin_http
