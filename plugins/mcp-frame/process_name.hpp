// The name of the process that sends a message, as encoded in frames.
#pragma once

#include <string>
#include <string_view>

namespace mcp_frame {

// Sanitizes a process name for frames and logs: control characters, spaces and invalid UTF-8 become
// '_'; at most max_name bytes, cut between characters. An empty name stays empty.
std::string clean_process_name(std::string_view name);

}  // namespace mcp_frame
