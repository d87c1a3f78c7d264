// Validates addresses for --listen.
#pragma once

#include <string>

namespace bulkhead::program {

// Returns true if `text` is a numeric host or "localhost" with a port from 0 to 65535, or is a
// socket path: "127.0.0.1:8808", "localhost:0", "[::1]:8808", "unix:/path". Does not open any
// sockets or resolve any names.
bool is_listen_address(const std::string &text);

}  // namespace bulkhead::program
