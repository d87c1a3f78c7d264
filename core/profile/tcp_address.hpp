// "127.0.0.1:9464" and "[::1]:9464" as the system wants them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace bulkhead {

// The bytes of a sockaddr; none: it is not an IPv4 address, or an IPv6 one in brackets, with a port
// from 1 on.
std::optional<std::string> tcp_sockaddr(std::string_view text);

}  // namespace bulkhead
