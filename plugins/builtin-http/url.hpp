// http and https URLs: only what all parsers read alike is accepted, so that the host that was
// judged is the host that is asked.
#pragma once

#include <string>
#include <string_view>

namespace builtin_http {

struct Url {
  std::string scheme;     // "http" or "https"
  std::string host;       // lower case, without brackets, without a dot at the end
  std::string authority;  // host (with brackets) and a port that is not the scheme's
  std::string target;     // path and query, at least "/"; the fragment is dropped
  bool is_address = false;

  std::string text() const { return scheme + "://" + authority + target; }
};

// False: *problem is a sentence for the caller, one of: the URL is missing, invalid, of another
// scheme, without host.
bool parse_url(std::string_view text, Url *out, std::string *problem);

// The URL that a Location header names, seen from base (RFC 3986, 5.2).
bool resolve_url(const Url &base, std::string_view location, Url *out, std::string *problem);

}  // namespace builtin_http
