// The host of a URL or of a rule, in the one form in which it is compared, judged and asked.
#pragma once

#include <string>
#include <string_view>

namespace builtin_http {

struct HostName {
  std::string name;         // lower case ASCII, without brackets, without a dot at the end
  bool is_address = false;  // an IP address, in its canonical form

  // As it stands in a URL: an IPv6 address in brackets.
  std::string bracketed() const {
    return name.find(':') == std::string::npos ? name : "[" + name + "]";
  }
};

// text: a name, an IPv4 address, or an IPv6 address in brackets; UTF-8. Names beyond ASCII become
// their xn-- form (IDNA 2008 as UTS 46 maps it, non-transitional). False: it is none of these, or
// one that some resolvers take for an address and others do not (127.1, 0x7f000001).
bool parse_host(std::string_view text, HostName *out);

}  // namespace builtin_http
