// Parses host names and IP addresses into a canonical form, for URLs and domain rules.
#pragma once

#include <string>
#include <string_view>

namespace builtin_http {

struct HostName {
  std::string name;         // lowercase ASCII, without brackets or a trailing dot
  bool is_address = false;  // `name` is an IP address in canonical form

  // Returns the name as it is written in URLs, with IPv6 addresses in brackets.
  std::string bracketed() const {
    return name.find(':') == std::string::npos ? name : "[" + name + "]";
  }
};

// Parses a host name, an IPv4 address, or an IPv6 address in brackets. `text` is UTF-8. Non-ASCII
// names are converted to their xn-- form (IDNA 2008 with UTS 46 mapping, non-transitional). Returns
// false for all other text. This includes 127.1 and 0x7f000001, which only some resolvers treat as
// addresses.
bool parse_host(std::string_view text, HostName *out);

}  // namespace builtin_http
