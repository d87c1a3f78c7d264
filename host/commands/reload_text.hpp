// Formats a gateway's response to POST /reload-config or /mcp/restart/NAME for the user.
#pragma once

#include <string>

#include "service/control_client.hpp"

namespace bulkhead::program {

// Determines whose notes are shown. `reload` shows the notes of the whole configuration; commands
// that concern one server do not repeat those of the other servers.
struct ShownNotes {
  bool all = true;
  std::string server = {};  // if `all` is false; an empty name means none
};

// Returns the socket and the result, such as "SOCKET: reloaded", followed by a line for each kind
// of change or error.
std::string describe_reload(const FoundGateway &gateway, const ShownNotes &notes = {});

}  // namespace bulkhead::program
