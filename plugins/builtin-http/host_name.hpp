// The canonical form of a host in a URL or rule.
#pragma once

#include <string>
#include <string_view>

namespace builtin_http {

struct HostName {
  std::string name;         // lower-case ASCII, without brackets or a trailing dot
  bool is_address = false;  // an IP address, in its canonical form

  // Returns the form used in URLs, with an IPv6 address in brackets.
  std::string bracketed() const {
    return name.find(':') == std::string::npos ? name : "[" + name + "]";
  }
};

// `text` is UTF-8: a name, an IPv4 address, or an IPv6 address in brackets. Non-ASCII names are
// converted to their xn-- form (IDNA 2008 with the mapping of UTS 46, non-transitional). Returns
// false for any other text, including forms that only some resolvers treat as an address (127.1,
// 0x7f000001).
bool parse_host(std::string_view text, HostName *out);

}  // namespace builtin_http
