// http and https URLs: only what all parsers read alike is accepted, so that the host that was
// judged is the host that is asked.
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

  // Scheme, host, and a port that is not the scheme's.
  std::string origin() const;
  std::string text() const { return origin() + target; }
};

// text: UTF-8; what is not ASCII is percent-encoded. False: *problem is a sentence for the caller,
// one of: the URL is missing, invalid, of another scheme, without host.
bool parse_url(std::string_view text, Url *out, std::string *problem);

// The URL that a Location header names, seen from base (RFC 3986, 5.2).
bool resolve_url(const Url &base, std::string_view location, Url *out, std::string *problem);

}  // namespace builtin_http
