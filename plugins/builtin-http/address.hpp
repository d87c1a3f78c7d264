// Is an IP address one of the public Internet?
#pragma once

#include <string_view>

namespace builtin_http {

// False for private, loopback, link-local (cloud metadata lives there), shared, documentation,
// multicast and reserved addresses, for IPv6 forms that carry such an IPv4 address, and for text
// that is no address.
bool is_public_address(std::string_view address) noexcept;

}  // namespace builtin_http
