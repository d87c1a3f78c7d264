// Formats a gateway's response to POST /reload-config for users.
#pragma once

#include <string>

#include "service/control_client.hpp"

namespace bulkhead::program {

// Returns "SOCKET: reloaded", followed by one line for each type of change or error.
std::string describe_reload(const FoundGateway &gateway);

}  // namespace bulkhead::program
