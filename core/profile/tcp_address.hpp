// Parses TCP addresses such as "127.0.0.1:9464" and "[::1]:9464".
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace bulkhead {

// Returns the bytes of a sockaddr. Returns nullopt unless the text is an IPv4 address, or an IPv6
// address in brackets, followed by a port other than 0.
std::optional<std::string> tcp_sockaddr(std::string_view text);

}  // namespace bulkhead
