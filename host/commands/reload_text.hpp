// Formats a gateway's response to POST /reload-config for the user.
#pragma once

#include <string>

#include "service/control_client.hpp"

namespace bulkhead::program {

// Returns "SOCKET: reloaded", followed by a line for each kind of change or error.
std::string describe_reload(const FoundGateway &gateway);

}  // namespace bulkhead::program
