// Composes the gateway's own error messages, as defined in JSON-RPC 2.0, section 5.1.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace bulkhead {

// Returns {"code":…,"message":…}, plus `data` (JSON text) if it is not empty.
std::string error_object(std::int32_t error_code, std::string_view text,
                         std::string_view data = {});
// Returns the complete message. `id_token` is the id as the client wrote it. If the id is empty
// (unreadable), it is omitted, because the MCP schema does not allow JSON-RPC's null id.
std::string error_message(std::string_view id_token, std::int32_t error_code, std::string_view text,
                          std::string_view data = {});

}  // namespace bulkhead
