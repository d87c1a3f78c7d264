// Sanitizes the name of the sending process in frames.
#pragma once

#include <string>
#include <string_view>

namespace mcp_frame {

// Returns the name for use in frames and logs: control characters, spaces and invalid UTF-8 are
// replaced with '_', and the name is truncated to max_name bytes at a character boundary. An empty
// name stays empty.
std::string clean_process_name(std::string_view name);

}  // namespace mcp_frame
