// The host of a URL or rule in canonical form.
#pragma once

#include <string>
#include <string_view>

namespace builtin_http {

struct HostName {
  std::string name;         // lower-case ASCII, without brackets and trailing dot
  bool is_address = false;  // an IP address, in its canonical form

  // The form used in URLs: an IPv6 address in brackets.
  std::string bracketed() const {
    return name.find(':') == std::string::npos ? name : "[" + name + "]";
  }
};

// text: a name, an IPv4 address, or an IPv6 address in brackets; UTF-8. Non-ASCII names are
// converted to their xn-- form (IDNA 2008 with the mapping of UTS 46, non-transitional). False:
// text has none of these forms, or is a form that only some resolvers treat as an address (127.1,
// 0x7f000001).
bool parse_host(std::string_view text, HostName *out);

}  // namespace builtin_http
