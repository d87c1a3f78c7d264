// The answer of a gateway to POST /reload-config, as text for people.
#pragma once

#include <string>

#include "service/control_client.hpp"

namespace bulkhead::program {

// "SOCKET: reloaded", and one line for each kind of change or error.
std::string describe_reload(const FoundGateway &gateway);

}  // namespace bulkhead::program
