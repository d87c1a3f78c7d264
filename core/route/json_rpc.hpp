// The messages that the gateway writes itself: errors, as JSON-RPC 2.0 section 5.1 has them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace bulkhead {

// {"code":…,"message":…} with `data` (JSON text; empty: none).
std::string error_object(std::int32_t error_code, std::string_view text,
                         std::string_view data = {});
// The whole message. `id_token`: as the client wrote it; empty: unreadable, and left out, since
// JSON-RPC's null is not an id that MCP's schema knows.
std::string error_message(std::string_view id_token, std::int32_t error_code, std::string_view text,
                          std::string_view data = {});

}  // namespace bulkhead
