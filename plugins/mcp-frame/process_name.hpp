// Sanitizes the process names that are sent in frames.
#pragma once

#include <string>
#include <string_view>

namespace mcp_frame {

// Makes a process name safe for frames and logs. Replaces control characters, spaces and invalid
// UTF-8 with '_', and truncates the name to max_name bytes at a character boundary. An empty name
// stays empty.
std::string clean_process_name(std::string_view name);

}  // namespace mcp_frame
