// The name of the sending process in frames.
#pragma once

#include <string>
#include <string_view>

namespace mcp_frame {

// Sanitizes a process name for frames and logs: replaces control characters, spaces and invalid
// UTF-8 with '_', and truncates the name to max_name bytes at a character boundary. An empty name
// stays empty.
std::string clean_process_name(std::string_view name);

}  // namespace mcp_frame
