// Parses addresses: "127.0.0.1:9464", "[::1]:9464".
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace bulkhead {

// Returns the bytes of a sockaddr, or nullopt if the text is not an IPv4 address, or an IPv6
// address in brackets, with a port above 0.
std::optional<std::string> tcp_sockaddr(std::string_view text);

}  // namespace bulkhead
