// Addresses for --listen.
#pragma once

#include <string>

namespace bulkhead::program {

// Returns true for "127.0.0.1:8808", "localhost:0", "[::1]:8808" or "unix:/path": a numeric host
// with a port from 0 to 65535, or a socket path. Opens nothing and resolves no names.
bool is_listen_address(const std::string &text);

}  // namespace bulkhead::program
