// The response of a gateway to POST /reload-config, as text for people.
#pragma once

#include <string>

#include "service/control_client.hpp"

namespace bulkhead::program {

// Returns "SOCKET: reloaded", and one line for each type of change or error.
std::string describe_reload(const FoundGateway &gateway);

}  // namespace bulkhead::program
