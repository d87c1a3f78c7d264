// Addresses as --listen takes them.
#pragma once

#include <string>

namespace bulkhead::program {

// "127.0.0.1:8808", "localhost:0", "[::1]:8808" or "unix:/path": a number of a host, a port of 0 to
// 65535. Nothing is opened, no name is looked up.
bool is_listen_address(const std::string &text);

}  // namespace bulkhead::program
