// Composes JSON-RPC 2.0 error responses (section 5.1 of the specification) for errors that the
// gateway itself reports, and reads the codes of error objects.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace bulkhead {

// Returns {"code":…,"message":…}. `data` is JSON text and is omitted if empty.
std::string error_object(std::int32_t error_code, std::string_view text,
                         std::string_view data = {});
// Returns the complete error response. `id_token` is the id exactly as the client wrote it. If the
// id could not be read, `id_token` is empty and the id is omitted: the MCP schema does not allow
// the null id of JSON-RPC.
std::string error_message(std::string_view id_token, std::int32_t error_code, std::string_view text,
                          std::string_view data = {});
// Returns the code of an error object, or nullopt if it has none that is a 32-bit integer.
std::optional<std::int32_t> read_error_code(std::string_view error);

}  // namespace bulkhead
